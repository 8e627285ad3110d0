"""One module a track; only the module of the track at hand is imported."""

from __future__ import annotations

from typing import Any

from evaluator.tracks.base import Track
from tasks.schema import Task
from tasks.schema import Track as TrackName


def track_of(task: Task) -> Track[Any]:
    """The scorer of a task's track."""
    match task.track:
        case TrackName.SEGMENTATION:
            from evaluator.tracks.segmentation import SegmentationTrack

            return SegmentationTrack(task)
        case TrackName.ENHANCEMENT | TrackName.SYNTHESIS:
            from evaluator.tracks.image import ImageTrack

            return ImageTrack(task)
        case TrackName.VQA:
            from evaluator.tracks.vqa import VqaTrack

            return VqaTrack(task)
        case TrackName.REPORT:
            from evaluator.tracks.report import ReportTrack

            return ReportTrack(task)
        case TrackName.DETECTION:
            from evaluator.tracks.detection import DetectionTrack

            return DetectionTrack(task)
        case TrackName.CLASSIFICATION:
            from evaluator.tracks.classification import ClassificationTrack

            return ClassificationTrack(task)
