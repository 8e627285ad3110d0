"""Steps that every track shares: look at the data, try the method, run it on all cases, verify what was written.

``method.py`` beside this file knows one track. It offers ``METHODS`` (name -> function from an item to a result),
``load``, ``describe``, ``describe_result``, ``quality``, ``save`` and ``inspect``.
"""

import json
import multiprocessing
import os
import platform
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from multiprocessing.connection import wait
from pathlib import Path

import method

DATA = Path("/data/public")
WORKSPACE = Path("/workspace")
OUTPUTS = WORKSPACE / "outputs"
TASK = json.loads((WORKSPACE / "task.json").read_text())


def cases():
    return sorted(folder for folder in DATA.iterdir() if folder.is_dir())


def is_complete(case):
    return all((OUTPUTS / case.name / name).is_file() for name in TASK["files"])


def cores():
    return len(os.sched_getaffinity(0))


def versions():
    print("python", platform.python_version(), "on", cores(), "cores")
    for package in ("numpy", "scipy", "scikit-image", "pillow", "nibabel"):
        try:
            print(package, version(package))
        except PackageNotFoundError:
            print(package, "is not installed")


def look(case):
    """Read one input and print what it is."""
    print(case.name, "holds", ", ".join(sorted(path.name for path in case.rglob("*") if path.is_file())))
    method.describe(method.load(case, TASK))


def forward(case, how):
    """One forward pass that leaves no output behind."""
    item = method.load(case, TASK)
    start = time.monotonic()
    result = method.METHODS[how](item)
    print(f"forward pass of {how} on {case.name}: {time.monotonic() - start:.2f} s")
    method.describe_result(result)


def compare(some):
    """Every candidate on a few public inputs: mean quality without references, and seconds a case."""
    table, items = {}, list(readable(some))
    for how, predict in method.METHODS.items():
        try:
            table[how] = measured(predict, items)
        except Exception as error:
            print(f"{how} failed: {type(error).__name__}: {error}")
            continue
        print("{0:12s} quality {quality:.4f}, {seconds:.2f} s a case".format(how, **table[how]))
    print("COMPARISON " + json.dumps(table))


def readable(some):
    for case in some:
        try:
            yield method.load(case, TASK)
        except Exception as error:
            print(f"{case.name} cannot be read: {type(error).__name__}: {error}")


def measured(predict, items):
    start = time.monotonic()
    results = [predict(item) for item in items]
    seconds = (time.monotonic() - start) / len(items)
    qualities = [method.quality(item, result, predict) for item, result in zip(items, results, strict=True)]
    return {"quality": round(sum(qualities) / len(qualities), 4), "seconds": round(seconds, 3)}


def scratch(name):
    folder = WORKSPACE / "scratch" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def run_case(case, how):
    """Load, predict and save one case; its files appear in the outputs only when all are written."""
    item = method.load(case, TASK)
    folder = scratch(case.name)
    method.save(method.METHODS[how](item), folder, TASK)
    (OUTPUTS / case.name).mkdir(parents=True, exist_ok=True)
    for name in TASK["files"]:
        (folder / name).replace(OUTPUTS / case.name / name)
    folder.rmdir()


def run_case_alone(case, how):
    try:
        run_case(case, how)
    except Exception as error:
        print(f"{case.name} failed: {type(error).__name__}: {error}", flush=True)
        sys.exit(1)


def pilot(case, how):
    run_case(case, how)
    print("pilot wrote", ", ".join(str(OUTPUTS / case.name / name) for name in TASK["files"]))


def review(case):
    """Read the outputs of one case back from disk and say what is wrong with them."""
    problems = method.inspect(method.load(case, TASK), OUTPUTS / case.name, TASK, show=print)
    print("plausible" if not problems else "not plausible: " + "; ".join(problems))
    return 1 if problems else 0


def batch(how, seconds, todo=None):
    """The cases of ``todo``, by default all without outputs, each in its own process: a crash costs one case only."""
    start = time.monotonic()
    context = multiprocessing.get_context("fork")
    waiting = [case for case in cases() if not is_complete(case)] if todo is None else list(todo)
    total, running = len(waiting), {}
    while (waiting or running) and time.monotonic() - start < seconds:
        while waiting and len(running) < cores():
            process = context.Process(target=run_case_alone, args=(waiting.pop(0), how))
            process.start()
            running[process.sentinel] = process
        for sentinel in wait(list(running), timeout=1):
            running.pop(sentinel).join()
            done = total - len(waiting) - len(running)
            if done % max(1, total // 5) == 0:
                print(f"{done}/{total} after {time.monotonic() - start:.1f} s", flush=True)
    for process in running.values():
        process.kill()
    left = [case.name for case in cases() if not is_complete(case)]
    print(f"batch: {total} cases to do, open: {len(left)} {left[:20]}")
    return 1 if left else 0


def problems_of(case):
    """What is wrong with the outputs of a case, by the contract; nothing is printed."""
    if not is_complete(case):
        return ["missing"]
    try:
        return method.inspect(method.load(case, TASK), OUTPUTS / case.name, TASK, show=lambda *_: None)
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]


def bad_cases():
    return [case for case in cases() if problems_of(case)]


def verify():
    """Every expected file: there, readable, within the contract."""
    bad = bad_cases()
    print(f"verified {len(cases())} cases, {len(bad)} with problems")
    for case in bad[:20]:
        print(" ", case.name, "; ".join(problems_of(case)))
    return 1 if bad else 0
