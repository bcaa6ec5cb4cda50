#!/usr/bin/env python3
"""Tests of tools/guides: guides that hold pass, and each way in which one does not is found."""

import importlib.machinery
import importlib.util
import os
import pathlib
import tempfile
import unittest

PATH = pathlib.Path(__file__).resolve().parent / "guides"
loader = importlib.machinery.SourceFileLoader("guides", str(PATH))
guides = importlib.util.module_from_spec(importlib.util.spec_from_loader("guides", loader))
loader.exec_module(guides)

GUIDE = """# A guide

```sh
printf 'one\\ntwo  2\\nthree 3.14159\\n' > numbers.txt
```

```text
rm -rf everything
```

```console
$ cat numbers.txt
one
  two 2
three 3.14…
$ cat numbers.txt \\
      numbers.txt
one
…
three …
$ grep four numbers.txt
$ echo $?
1
```
"""


def lines_of(text):
    with tempfile.TemporaryDirectory() as folder:
        return [line for line, _ in guides.run_guide(text, dict(os.environ), folder)]


class Guides(unittest.TestCase):
    def test_a_guide_that_holds(self):
        self.assertEqual(lines_of(GUIDE), [])

    def changed(self, old, new):
        self.assertIn(old, GUIDE)
        return lines_of(GUIDE.replace(old, new))

    def test_other_output_is_found_at_its_line(self):
        self.assertEqual(self.changed("three 3.14…", "three 3.15…"), [15])
        self.assertEqual(self.changed("one\n…\nthree …", "one\n…\nfour …"), [20])

    def test_output_that_is_not_shown_is_found(self):
        self.assertEqual(self.changed("three 3.14…\n", ""), [15])

    def test_output_that_is_not_printed_is_found(self):
        self.assertEqual(self.changed("three 3.14…", "three 3.14…\nfour"), [16])

    def test_a_status_that_is_not_said_is_found(self):
        self.assertEqual(self.changed("$ echo $?\n1\n", ""), [21])

    def test_another_status_is_found(self):
        self.assertEqual(self.changed("\n1\n", "\n2\n"), [23])
        self.assertEqual(self.changed("grep four", "grep -c one"), [22, 23])

    def test_a_script_that_fails_is_found(self):
        self.assertEqual(self.changed("printf 'one", "false\nprintf 'one")[0], 4)

    def test_a_block_of_another_kind_is_refused(self):
        self.assertEqual(self.changed("```text", "```bash"), [7])

    def test_a_guide_without_commands_is_refused(self):
        self.assertEqual(lines_of("# Words\n"), [1])

    def test_a_block_that_does_not_end_is_refused(self):
        self.assertEqual(lines_of("```sh\ntrue\n"), [3])


if __name__ == "__main__":
    unittest.main()
