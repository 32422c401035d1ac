"""Runs the API tests that only need HTTP through the gateway, each with a new tenant."""

import os
import re
import subprocess

from aws import expect, outputs

TEST = re.compile(r"^#\[tokio::test[^\n]*\nasync fn (\w+)\(\) .*?^}", re.MULTILINE | re.DOTALL)


def over_http(folder):
    """Returns the names of the tests that start with an `over_http` client."""
    for file in sorted(folder.rglob("*.rs")):
        module = [*file.relative_to(folder).parts[:-1], file.stem]
        names = [part for part in module if part not in ("mod", "main")]
        for test in TEST.finditer(file.read_text(encoding="utf-8")):
            if "over_http()" in test[0]:
                yield "::".join([*names, test[1]])


def run(repository, binary):
    names = sorted(over_http(repository / "tests/api"))
    expect(len(names) >= 100, f"only {len(names)} tests are over HTTP")
    # Runs only four tests at once: the account starts a function instance for each concurrent request, and concurrent starts are
    # slow.
    failed, errors = attempt(binary, names, 4)
    if failed:
        # As in AWS, a table that is briefly slow leads to a 503, so failed tests run again, with a new tenant.
        expect(len(failed) <= 3, f"{len(failed)} of {len(names)} tests failed: {errors}")
        print(f"deploy: once more, one at a time: {', '.join(failed)}", flush=True)
        failed, errors = attempt(binary, failed, 1)
        expect(not failed, f"failed twice: {errors}")
    return len(names)


def attempt(binary, names, at_once):
    """Returns the names of failed tests, and their output."""
    environment = os.environ | {"TEST_DEPLOYED_API": outputs()["BaseUrl"].removesuffix("/v1")}
    command = [binary, "--exact", f"--test-threads={at_once}", *names]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    result = re.search(r"^test result: \w+\. (\d+) passed; (\d+) failed; 0 ignored", done.stdout, re.MULTILINE)
    errors = done.stdout.partition("\nfailures:\n")[2][-8000:] + done.stderr[-2000:]
    expect(result and int(result[1]) + int(result[2]) == len(names), f"not all of {len(names)} tests ran: {errors}")
    failed = re.findall(r"^test (\S+) \.\.\. FAILED$", done.stdout, re.MULTILINE)
    expect(len(failed) == int(result[2]), f"{result[2]} tests failed, but {len(failed)} are named: {errors}")
    return failed, errors
