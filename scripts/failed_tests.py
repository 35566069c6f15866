#!/usr/bin/env python3
"""Prints the last lines of each failed test, from a JUnit report of ctest.

    scripts/failed_tests.py REPORT

A run of several thousand tests prints a failure somewhere in the middle. This repeats it where it is read: at the end.
"""

import sys
from xml.etree import ElementTree

LINES = 40


def main():
    for case in ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
        if case.get("status") != "fail":
            continue
        output = (case.findtext("system-out") or "").rstrip().splitlines()
        left_out = max(0, len(output) - LINES)
        print(f"\n--- {case.get('name')} failed after {float(case.get('time', 0)):.1f} s"
              + (f"; the last {LINES} of {len(output)} lines:" if left_out else ":"))
        print("\n".join(output[left_out:]))


if __name__ == "__main__":
    main()
