"""`headwise doctor`: checks this machine, or finds out what is wrong with a run directory."""

import argparse
import json
import sys

from headwise.cli.options.paths import ExistingRun
from headwise.language import say


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "doctor",
        help=say(
            "check this machine, and optionally a run directory", "检查本机，也可检查运行目录"
        ),
        description=say(
            "Shows what this machine can do (processor, accelerator, compiler, versions). With "
            "DIR, verifies every checkpoint and the bundle of a run by checksum and shows what is "
            "damaged and what to do.\n\n  headwise doctor\n  headwise doctor runs/demo",
            "说明本机能力（处理器、加速器、编译器、版本）。给出 DIR 时，"
            "按校验和检查该运行的每个检查点与模型，指出损坏之处与处理办法。\n\n  headwise "
            "doctor\n  headwise doctor runs/demo",
        ),
    )
    parser.add_argument(
        "run_directory",
        nargs="?",
        type=ExistingRun,
        metavar="DIR",
        help=say("a run or bundle directory", "运行目录或模型目录"),
    )
    parser.add_argument(
        "--json", action="store_true", help=say("machine-readable output", "输出 JSON")
    )


def run(arguments: argparse.Namespace) -> int:
    from headwise.inspecting.machine_diagnosis import examine_machine
    from headwise.inspecting.run_diagnosis import examine_run

    findings = (
        examine_machine()
        if arguments.run_directory is None
        else examine_run(arguments.run_directory)
    )
    if arguments.json:
        sys.stdout.write(
            json.dumps([finding.as_dict() for finding in findings], ensure_ascii=False, indent=2)
            + "\n"
        )
    else:
        from headwise.cli.terminal.display import print_findings

        print_findings(findings)
    return 3 if any(finding.state == "damaged" for finding in findings) else 0
