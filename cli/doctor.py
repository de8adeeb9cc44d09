"""`chiron doctor`: lists what is missing on this machine, with commands that fix it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict

import click

from chiron.cli import options
from chiron.cli.output import console, plain
from chiron.installation.preflight import preflight
from chiron.openfaas.credentials import gateway_url


@click.command("doctor")
@options.gateway
@options.tls_no_verify
@options.as_json
def command(gateway: str | None, tls_no_verify: bool, as_json: bool) -> int:
    """Check for all that chiron needs, and print the line that fixes each missing thing.

    \b
    Example:
      chiron doctor
    """
    url = gateway_url(gateway, os.environ)
    findings = preflight(url, os.environ, verify_tls=not tls_no_verify)
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings]))
    for finding in findings:
        mark = "[green]ok[/green]  " if finding.ok else "[red]lack[/red]"
        optional = "" if finding.ok or finding.required else " (optional)"
        out = console()
        out.print(f"{mark} {finding.name}{optional}: ", end="")
        out.print(plain(finding.detail), markup=False, soft_wrap=True)
        if finding.fix:
            out.print(f"       fix: {plain(finding.fix)}", markup=False, soft_wrap=True)
    return 0 if all(finding.ok for finding in findings if finding.required) else 1
