"""Arguments that are paths on this disk, or places by URL."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dpveil.core.urls import place

Inputs = Annotated[
    list[Any],  # of Path: Typer would make a plain one of each
    typer.Argument(
        metavar="INPUT",
        parser=place,
        help="Photos, PDF and multi-page TIFF files, WebDataset shards (.tar), Parquet files, and folders;"
        " photos, shards and Parquet files also by URL (s3://).",
    ),
]
"""What is released."""
Out = Annotated[
    Any,
    typer.Option(
        metavar="PATH",
        parser=place,
        help="A folder, made if missing, or a prefix (s3://); for one input, also a file, in a folder"
        " that exists.",
    ),
]
"""Where releases go."""
