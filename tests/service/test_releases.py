"""The addresses of the service, one after another, in one process with one worker."""

from __future__ import annotations

import hashlib
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from service_client import SETTINGS, photo, upload

import dpveil
from dpveil.core.certificate import parse_certificate


def test_a_release_is_certified_and_verifies(client: Any, tmp_path: Any) -> None:
    original = photo()
    answer = client.post("/v1/releases", files=upload(original))
    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert answer.headers["location"] == f"/v1/releases/{told['id']}"
    image = client.get(told["image_url"])
    assert image.headers["content-type"] == "image/png"
    assert told["certificate"]["output"]["sha256"] == hashlib.sha256(image.content).hexdigest()
    certificate = client.get(told["certificate_url"])
    (tmp_path / "a.png").write_bytes(image.content)
    (tmp_path / "a.png.certificate.json").write_bytes(certificate.content)
    found = dpveil.verify(tmp_path / "a.png")
    assert (found.status, found.problems) == ("consistent", ())
    assert parse_certificate(certificate.text).to_json() == told["certificate"]
    before, after = (np.asarray(Image.open(io.BytesIO(file))) for file in (original, image.content))
    inside = np.zeros(before.shape[:2], bool)
    inside[8:32, 8:40] = True
    assert (before[~inside] == after[~inside]).all()
    assert (before[inside] != after[inside]).mean() > 0.9
    assert client.get(f"/v1/releases/{told['id']}").json()["certificate"] == told["certificate"]


@pytest.mark.parametrize("kind", ["png", "jpeg"])
def test_downloads_have_names_that_say_nothing_of_the_photo(client: Any, kind: str, tmp_path: Path) -> None:
    """Saved under them, side by side, the two files verify."""
    told = client.post("/v1/releases", files=upload(photo(), format=kind)).json()
    saved = []
    for url in (told["image_url"], told["certificate_url"]):
        answer = client.get(url)
        stated = re.fullmatch(r'attachment; filename="([\w.-]+)"', answer.headers["content-disposition"])
        assert stated
        saved.append(tmp_path / stated[1])
        saved[-1].write_bytes(answer.content)
    image = f"release-{told['id'][:8]}.{kind}"
    assert [file.name for file in saved] == [image, f"{image}.certificate.json"]
    assert dpveil.verify(saved[0]).status == "consistent"


def test_a_retry_gets_the_same_release_and_another_key_another(client: Any) -> None:
    files = upload(photo(seed=2))
    first, again, other = (
        client.post("/v1/releases", files=files, headers={"Idempotency-Key": key})
        for key in ("one", "one", "two")
    )
    assert [answer.status_code for answer in (first, again, other)] == [201, 201, 201]
    assert again.json() == first.json()
    assert (first.headers.get("idempotency-replayed"), again.headers["idempotency-replayed"]) == (
        None,
        "true",
    )
    assert other.json()["certificate"]["output"]["sha256"] != first.json()["certificate"]["output"]["sha256"]
    for changed in (upload(photo(seed=3)), upload(photo(seed=2), epsilon=21)):
        reused = client.post("/v1/releases", files=changed, headers={"Idempotency-Key": "one"})
        assert reused.status_code == 422
        assert reused.json()["type"] == "urn:dpveil:error:KeyReused"


def test_plan_explain_and_methods_say_what_the_command_line_says(client: Any, cli_json: Any) -> None:
    contents = photo(seed=4)
    blur = {"method": "blur", "sigma": 2, "regions": [[8, 8, 32, 24]]}
    planned = client.post("/v1/plan", files=upload(contents, blur))
    assert planned.status_code == 200, planned.text
    method = ["--method", "blur", "--sigma", "2"]
    assert planned.json() == cli_json("explain", *method, "--regions", "8,8,32,24", photo=contents)
    explained = client.get("/v1/explain?method=blur&sigma=2&size=30x20&channels=1")
    assert explained.json() == cli_json("explain", *method, "--size", "30x20", "--channels", "1")
    assert client.get("/v1/methods").json() == cli_json("methods")


def test_the_release_promises_what_the_plan_stated(client: Any) -> None:
    files = upload(photo(seed=5))
    total = client.post("/v1/plan", files=files).json()["total"]
    del total["scope"]
    assert client.post("/v1/releases", files=files).json()["certificate"]["composition"] == total


def test_a_job_is_posted_looked_at_and_deleted(client: Any) -> None:
    posted = client.post("/v1/releases", files=upload(photo()), headers={"Prefer": "respond-async"})
    assert posted.status_code == 202
    job = posted.json()
    assert posted.headers["location"] == job["job_url"]
    while (told := client.get(job["job_url"]).json())["status"] == "working":
        pass
    assert told["status"] == "done"
    assert client.get(told["release_url"]).status_code == 200
    assert client.delete(told["release_url"]).status_code == 204
    for gone in (told["release_url"], job["job_url"], f"{told['release_url']}/image"):
        assert client.get(gone).status_code == 404
    assert client.delete(job["job_url"]).status_code == 404


def test_a_job_that_fails_says_why(client: Any) -> None:
    posted = client.post(
        "/v1/releases", files=upload(photo(), regions="0,0,999,9"), headers={"Prefer": "respond-async"}
    )
    job = posted.json()["job_url"] if posted.status_code == 202 else None
    while job and (told := client.get(job).json())["status"] == "working":
        pass
    problem = told["problem"] if job else posted.json()
    assert problem["status"] == 422
    assert problem["type"] == "urn:dpveil:error:RegionError"
    assert "outside the photo" in problem["title"]


@pytest.mark.parametrize(
    ("changed", "kind", "words"),
    [
        ({"epsilon": None}, "InvalidParameter", "epsilon is missing"),
        ({"mehtod": "dp-pix"}, "UnknownName", "unknown setting 'mehtod'"),
        ({"epsilonn": 1}, "InvalidParameter", "is not a parameter of dp-pix"),
        ({"method": "dp-pics"}, "UnknownName", "unknown method 'dp-pics'"),
        ({"regions": "moon"}, "UnknownName", "unknown regions 'moon'"),
        ({"regions": [[1, 2, 3]]}, "UnknownName", "unknown regions"),
        ({"if_none": "perhaps"}, "InvalidParameter", "is unknown"),
        ({"at_least": "strong"}, "TooWeak", "at least strong was asked for"),
        ({"block": [8]}, "InvalidParameter", "is not a single value"),
        ({"post_processing": ["sharpen"]}, "UnknownName", "sharpen"),
        ({"subject": 7}, "BadRequest", "the subject is no text"),
        ({"subject": "album-7"}, "InvalidParameter", "pays for nothing, as the service has no ledger"),
    ],
)
def test_wrong_settings_are_refused_in_the_words_of_the_library(
    client: Any, changed: dict[str, Any], kind: str, words: str
) -> None:
    answer = client.post("/v1/releases", files=upload(photo(), **changed))
    assert answer.status_code in (400, 422), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["type"] == f"urn:dpveil:error:{kind}"
    assert words in problem["title"]
    assert "Traceback" not in answer.text


def test_decimals_are_exact_and_formats_are_written(client: Any) -> None:
    text = json.dumps({**SETTINGS, "format": "webp"}).replace("20", "0.30000000000000000001")
    told = client.post("/v1/releases", files=upload(photo(), text)).json()
    assert told["certificate"]["parameters"]["epsilon"] == "30000000000000000001/100000000000000000000"
    assert client.get(told["image_url"]).headers["content-type"] == "image/webp"


def test_health_and_figures_name_nobody(client: Any) -> None:
    client.post("/v1/releases", files=upload(photo()), headers={"Idempotency-Key": "anna-7"})
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}
    figures = client.get("/metrics").text
    assert 'dpveil_requests_total{route="/v1/releases",status="201"}' in figures
    assert "dpveil_upload_bytes 0.0" in figures
    for told in ("anna", "secret", "testclient", "localhost"):
        assert told not in figures


def test_every_answer_carries_the_headers_and_no_site_may_ask(client: Any) -> None:
    for answer in (
        client.get("/healthz"),
        client.get("/no"),
        client.post("/v1/plan"),
        client.put("/v1/plan"),
    ):
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in answer.headers
        assert "server" not in answer.headers
    assert client.get("/no").json()["status"] == 404
    assert client.put("/v1/plan").json()["status"] == 405
    assert client.put("/v1/plan").headers["allow"] == "POST"


def test_explain_is_documented_by_a_query_that_works(client: Any) -> None:
    """Its parameters are those of methods, and refusals name the query."""
    from dpveil.service.schemas import TRY

    schema = client.get("/openapi.json").json()
    told = schema["paths"]["/v1/explain"]["get"]
    named = {row["name"]: row.get("example") for row in told["parameters"]}
    answer = client.get("/v1/explain", params={n: value for n, value in named.items() if value is not None})
    assert answer.json() == client.get(TRY).json()
    methods = client.get("/v1/methods").json()["methods"]
    known = {parameter for method in methods for parameter in method["parameters"]}
    assert {*named} - {"method", "size", "channels"} <= known
    for query, words in (
        ("metod=dp-pix", "unknown setting 'metod'"),
        ("method=dp-pix", "epsilon is missing"),
    ):
        refused = client.get(f"/v1/explain?{query}")
        assert (refused.status_code, words in refused.json()["title"]) == (422, True)
        assert TRY in refused.json()["hint"]
    assert "/v1/explain?" not in client.post("/v1/plan", files=upload(photo(), epsilon=-1)).text


def body_of(schema: Any) -> Any:
    """Return what the form of a release has, by the table for programs."""
    body = schema["paths"]["/v1/releases"]["post"]["requestBody"]
    return body["content"]["multipart/form-data"]["schema"]["properties"]


def test_openapi_says_which_statuses_and_keys_there_are(client: Any) -> None:
    schema = client.get("/openapi.json").json()
    open_ = ("/healthz", "/readyz")
    for path in (*open_, "/metrics"):
        for query, headers in (("", {}), ("?é", {}), ("", {"origin": "null"}), ("", {"host": "elsewhere"})):
            status = client.get(path + query * 5000, headers=headers).status_code
            assert str(status) in schema["paths"][path]["get"]["responses"]
    assert schema["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    for path, row in schema["paths"].items():
        needed = [made.get("security") for made in row.values()]
        assert needed == [None if path in open_ else [{"key": []}, {}]] * len(row), path
    example = body_of(schema)["settings"]["example"]
    answer = client.post("/v1/plan", files=upload(photo(200, 200), example))
    assert answer.status_code == 200, answer.text
    assert {client.get(f"/{no}").status_code for no in ("docs", "redoc", "openapi.json/")} == {404}


def test_a_copy_is_only_made_if_asked_for_and_says_so(client: Any) -> None:
    search = {"method": "dp-pix", "epsilon": 1, "block": 8, "regions": "faces"}
    blank = io.BytesIO()
    Image.new("RGB", (80, 80)).save(blank, "PNG")
    refused = client.post("/v1/releases", files=upload(blank.getvalue(), search))
    assert refused.json()["type"] == "urn:dpveil:error:NoRegion"
    copied = client.post("/v1/releases", files=upload(blank.getvalue(), search, if_none="copy")).json()
    assert copied["certificate"]["publishable"] is False
    assert copied["certificate"]["composition"] is None
