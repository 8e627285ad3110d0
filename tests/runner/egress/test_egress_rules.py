"""Who may be asked, and which addresses no name may lead to."""

from __future__ import annotations

import socket

import pytest
from pydantic import HttpUrl

from runner.egress.addresses import forbidden, resolve
from runner.egress.index import package_index
from runner.egress.rules import ALIAS, Endpoint, Rules, label_hosts, listed_hosts
from runner.errors import UsageProblem
from tasks.registry import all_tasks, load_task

OWN = ("127.0.0.1", "127.8.8.8", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::127.0.0.1")
CLOUD = (
    "169.254.169.254", "168.63.129.16", "100.100.100.200", "fd00:ec2::254", "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1",
)  # fmt: skip
NEAR = (
    "10.0.0.1", "172.16.0.1", "172.17.0.1", "192.168.1.1", "169.254.1.1", "100.64.0.1", "198.18.0.1", "192.0.0.8",
    "224.0.0.1", "255.255.255.255", "fe80::1", "fe80::1%eth0", "fd12::1", "ff02::1", "::ffff:10.0.0.1",
    "64:ff9b::a00:1", "64:ff9b:1::101:101", "2002:c0a8:101::1",
)  # fmt: skip


@pytest.mark.parametrize("address", [*OWN, *CLOUD, *NEAR])
def test_addresses_that_no_run_may_reach(address):
    assert forbidden(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "151.101.0.223", "2606:4700::1111", "64:ff9b::101:101"])
def test_public_addresses_are_reachable(address):
    assert forbidden(address) is None


@pytest.mark.parametrize("address", CLOUD)
def test_metadata_services_are_called_so(address):
    assert "metadata" in forbidden(address)


def test_an_address_of_this_machine_is_refused_public_or_not(monkeypatch):
    """A host's services also listen on its public address; where it has one, nothing else tells."""
    from runner.egress import addresses

    monkeypatch.setattr(addresses, "_is_own", lambda address: str(address) == "1.1.1.1")
    assert "runs the benchmark" in forbidden("1.1.1.1")


def test_own_addresses_are_known_by_binding_to_them():
    from ipaddress import ip_address

    from runner.egress.addresses import _is_own

    assert _is_own(ip_address("127.0.0.1"))
    assert not _is_own(ip_address("192.0.2.200"))


def test_names_resolve_without_repeats():
    found = resolve("localhost", 80)
    assert set(found) <= {"127.0.0.1", "::1"}
    assert len(found) == len(set(found))
    with pytest.raises(socket.gaierror):
        resolve("no-such-host.invalid", 80)


# --- hosts ---


@pytest.mark.parametrize(
    "host", ["pypi.org", "PyPI.org", "pypi.org.", "huggingface.co", "cdn-lfs.hf.co", "github.com"]
)
@pytest.mark.parametrize("port", [80, 443])
def test_indexes_and_hubs_are_reachable_in_every_task(host, port):
    for task in all_tasks():
        assert Rules.of(task.source).decide(host, port).allowed, task.id


@pytest.mark.parametrize(
    ("host", "port", "words"),
    [
        ("example.com", 443, "not among the package indexes"),
        ("pypi.org.example.com", 443, "not among"),
        ("evilpypi.org", 443, "not among"),
        ("xhf.co", 443, "not among"),
        ("127.0.0.1", 443, "not among"),
        ("169.254.169.254", 80, "not among"),
        ("localhost", 443, "not among"),
        ("package-index", 80, "not among"),
        ("pypi.org", 22, "ports 80 and 443"),
        ("huggingface.co", 8443, "ports 80 and 443"),
    ],
)
def test_everything_else_is_refused_with_a_reason(host, port, words):
    decision = Rules().decide(host, port)
    assert not decision.allowed
    assert words in decision.reason
    assert "\n" not in decision.reason


def test_every_host_of_a_tasks_data_is_refused_unless_it_is_a_shared_hub():
    shared = {*listed_hosts().packages, *listed_hosts().hubs}
    for task in all_tasks():
        rules = Rules.of(task.source)
        assert rules.labels
        for host in rules.labels - shared:
            for name in (host, f"www.{host}", f"files.{host}"):
                decision = rules.decide(name, 443)
                assert (decision.allowed, decision.rule) == (False, "labels"), (task.id, name)
                assert "data or labels of this task" in decision.reason


def test_a_model_host_is_refused_where_the_data_come_from_it_too():
    assert Rules().decide("zenodo.org", 443).allowed
    staged = load_task("totalsegmentator-ctsr-task").source.model_copy(
        update={"url": HttpUrl("https://zenodo.org/records/10047292")}
    )
    assert Rules.of(staged).decide("zenodo.org", 443).rule == "labels"


def test_no_brief_names_a_model_on_a_host_that_its_task_refuses():
    for task in all_tasks():
        rules = Rules.of(task.source)
        for model in (task.tiers.lite.model, *task.tiers.standard.candidates):
            host = model.source.split("/")[0]
            if "/" in model.source and "." in host:
                assert rules.decide(host, 443).rule != "labels", (task.id, host)


def test_the_dataset_of_a_task_is_refused_on_a_hub_where_its_path_can_be_seen():
    rules = Rules.of(load_task("pathvqa-task").source)
    for path in (
        "/datasets/flaviagiammarino/path-vqa/resolve/main/x.parquet",
        "/api/datasets/FlaviaGiammarino/path-vqa",
        "/datasets/flaviagiammarino/path-vqa",
        "/api/datasets/flaviagiammarino/path-vqa?full=true",
        "/dataset%73/flaviagiammarino%2Fpath-vqa/resolve/main/x",
        "/%2564atasets//flaviagiammarino/./path-vqa",
    ):
        decision = rules.decide("huggingface.co", 80, path)
        assert (decision.allowed, decision.rule) == (False, "labels"), path
    assert rules.decide("huggingface.co", 80, "/datasets/flaviagiammarino/path-vqa-tools").allowed
    assert rules.decide("huggingface.co", 443, None).allowed  # TLS hides it: the documentation says so


def test_label_hosts_come_from_every_part_of_a_source():
    hosts = label_hosts(load_task("dentex-det-task").source)
    assert "huggingface.co" in hosts
    assert any("figshare.com" in label_hosts(task.source) for task in all_tasks())
    assert any("zenodo.org" in label_hosts(task.source) for task in all_tasks())


def test_the_operators_index_is_reachable_on_its_own_port_and_under_our_name():
    rules = Rules(
        operator=(Endpoint("mirror.lan", 8081, private=True), Endpoint("files.lan", 443, private=True))
    )
    for host, port, real in (
        ("mirror.lan", 8081, "mirror.lan"),
        (ALIAS, 80, "mirror.lan"),
        ("files.lan", 443, "files.lan"),
    ):
        decision = rules.decide(host, port)
        assert decision.allowed
        assert decision.private
        assert decision.host == real
        assert decision.shown == ALIAS
    assert not rules.decide("mirror.lan", 443).allowed
    assert not rules.decide("other.lan", 8081).allowed


# --- the operator's index ---


def test_the_operators_word_counts_before_pips_settings(tmp_path):
    config = tmp_path / "pip.conf"
    config.write_text("[global]\nindex-url = https://configured.example/simple\ncert = /nonexistent\n")
    settings = {"PIP_CONFIG_FILE": str(config), "HOME": str(tmp_path)}
    index = package_index(settings)
    assert index.url == "https://configured.example/simple"
    assert index.endpoints == (Endpoint("configured.example", 443),)
    assert (
        package_index({**settings, "PIP_INDEX_URL": "https://env.example/s"}).url == "https://env.example/s"
    )
    named = package_index(
        {**settings, "AUTOMEDBENCH_PACKAGE_INDEX": "http://10.0.0.5:8081/simple https://files.lan"}
    )
    assert named.url == "http://package-index/simple"
    assert named.endpoints == (Endpoint("10.0.0.5", 8081, True), Endpoint("files.lan", 443, True))
    assert named.environment("/ca")["PIP_TRUSTED_HOST"] == ALIAS


def test_no_index_means_pips_own_default(tmp_path):
    index = package_index({"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path), "PIP_INDEX_URL": ""})
    assert "PIP_INDEX_URL" not in index.environment("/ca") or index.url


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("ftp://mirror.lan/simple", "expected http:// or https://"),
        ("mirror.lan", "expected http:// or https://"),
        ("http://:80/", "expected http:// or https://"),
        ("http://mirror.lan:port/", "expected http:// or https://"),
        ("https://user:word@mirror.lan/simple", "holds a password"),
    ],
)
def test_a_wrong_index_is_named_and_a_password_never_goes_inside(value, words):
    with pytest.raises(UsageProblem, match=words) as caught:
        package_index({"AUTOMEDBENCH_PACKAGE_INDEX": value})
    assert "word@" not in str(caught.value)


def test_an_index_of_pip_with_a_password_is_left_out():
    index = package_index({"PIP_INDEX_URL": "https://user:word@mirror.lan/simple"})
    assert index.url is None
    assert index.endpoints == ()


def test_certificates_go_along_and_keys_do_not(tmp_path):
    bundle, key = tmp_path / "ca.pem", tmp_path / "key.pem"
    bundle.write_text("-----BEGIN CERTIFICATE-----\n")
    key.write_text("-----BEGIN RSA PRIVATE KEY-----\n")
    index = package_index({"PIP_CERT": str(bundle)})
    assert index.certificates == bundle.read_bytes()
    assert index.environment("/ca.pem")["SSL_CERT_FILE"] == "/ca.pem"
    assert package_index({"PIP_CERT": str(key)}).certificates is None
    assert package_index({"PIP_CERT": str(tmp_path / "absent")}).certificates is None


def test_a_socket_family_that_is_missing_is_no_address_of_ours(monkeypatch):
    from ipaddress import ip_address

    from runner.egress.addresses import _is_own

    def refuse(*_):
        raise OSError("no such family")

    monkeypatch.setattr(socket, "socket", refuse)
    assert not _is_own(ip_address("2606:4700::1111"))
