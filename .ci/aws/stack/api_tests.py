"""Runs those tests of the API that need nothing but HTTP through the gateway, each with a new tenant."""

import os
import re
import subprocess
from pathlib import Path

from aws import expect, outputs

TEST = re.compile(r"^#\[tokio::test[^\n]*\nasync fn (\w+)\(\) .*?^}", re.MULTILINE | re.DOTALL)


def over_http(folder):
    """Returns the names of the tests whose bodies begin with a client that is `over_http`."""
    for file in sorted(folder.rglob("*.rs")):
        module = [*file.relative_to(folder).parts[:-1], file.stem]
        names = [part for part in module if part not in ("mod", "main")]
        for test in TEST.finditer(file.read_text(encoding="utf-8")):
            if "over_http()" in test[0]:
                yield "::".join([*names, test[1]])


def run(repository, binary):
    names = sorted(over_http(repository / "tests/api"))
    environment = os.environ | {"TEST_DEPLOYED_API": outputs()["BaseUrl"].removesuffix("/v1")}
    # Few at once: the account starts a function for each simultaneous request, and a start takes long beside many others.
    command = [binary, "--exact", "--test-threads=4", *names]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    result = re.search(r"^test result: ok\. (\d+) passed; 0 failed; 0 ignored", done.stdout, re.MULTILINE)
    errors = done.stdout.partition("\nfailures:\n")[2][-8000:] + done.stderr[-2000:]
    expect(result and int(result[1]) == len(names) >= 100, f"of {len(names)} tests, not all passed: {errors}")
    return len(names)
