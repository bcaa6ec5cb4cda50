#!/usr/bin/env python3
"""Self test of tools/tidy: every rule must fire on a small bad tree, and none on a good one."""

import pathlib
import re
import runpy
import subprocess
import sys
import tempfile
import unittest

TIDY = pathlib.Path(__file__).resolve().parent / "tidy"
RULES = runpy.run_path(str(TIDY))
TOP = "#pragma once\n// Contract: none.\n"


def tidy(files, headers=False):
    """The findings in a tree of {path: text}."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            target = pathlib.Path(root) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        findings, count = RULES["check_tree"](root, headers)
    assert count == sum(path.endswith(RULES["CODE_SUFFIXES"]) for path in files)
    return findings


class TidyTest(unittest.TestCase):
    def expect_finding(self, files, finding, headers=False):
        findings = tidy(files, headers)
        self.assertEqual(len(findings), 1, findings)
        self.assertIn(finding, findings[0])

    def expect_clean(self, files, headers=False):
        self.assertEqual(tidy(files, headers), [])

    def include(self, path, target):
        return {path: (TOP if path.endswith("hpp") else "") + f'#include "{target}"\n'}

    def test_documents_name_what_is_there(self):
        here = {"src/base/a.hpp": TOP, "docs/a.md": "# A\n"}
        self.expect_clean({**here, "README.md": "[a](docs/a.md#top) [b](https://b.org/c.md) `gone.hpp`\n",
                           "ARCHITECTURE.md": "`a.hpp`, `src/base/a.hpp`\n",
                           "src/base/README.md": "`a.hpp`, `_host.cpp`, `tile_*.hpp`, `src/base/a.hpp`\n"})
        self.expect_finding({**here, "README.md": "\n[a](docs/b.md)\n"}, "README.md:2: links to docs/b.md")
        self.expect_finding({**here, "ARCHITECTURE.md": "`b.hpp`\n"}, "names b.hpp")
        self.expect_finding({**here, "src/base/README.md": "`src/run/a.hpp`\n"}, "names src/run/a.hpp")
        self.expect_finding({**here, "src/run/README.md": "`a.hpp`\n"}, "names a.hpp")

    def test_documents_that_are_read_first_are_short(self):
        self.expect_clean({"README.md": "a\n" * 120, "docs/a.md": "a\n" * 121})
        self.expect_finding({"README.md": "a\n" * 121}, "README.md:121: longer than 120 lines")
        self.expect_finding({"ARCHITECTURE.md": "a\n" * 121}, "longer than 120 lines")

    def test_constants_that_hide_those_of_headers(self):
        header = TOP + "namespace strata {\ninline constexpr int kMost = 8;\n}  // namespace strata\n"
        inner = TOP + "namespace strata {\nnamespace a {\ninline constexpr int kMost = 8;\n}\n}\n"
        source = "namespace strata {\nnamespace {\nconstexpr std::int64_t kMost = 16;\n}\n}\n"
        self.expect_finding({"src/schedule/a.hpp": header, "src/run/b.cpp": source}, "kMost is also")
        self.expect_clean({"src/schedule/a.hpp": inner, "src/run/b.cpp": source})
        self.expect_clean({"src/sparse/a.hpp": header, "src/run/b.cpp": source})

    def test_includes_leftward_are_clean(self):
        for path, target in [
                ("src/matrix/a.hpp", "base/check.hpp"), ("src/matrix/a.hpp", "matrix/b.hpp"),
                ("src/kernels/a.cpp", "store/block_store.hpp"), ("src/io/a.cpp", "strata/io.hpp"),
                ("src/io/a.cpp", "strata/matrix_view.hpp"), ("src/report/a.cpp", "strata/trace.hpp"),
                ("src/report/a.cpp", "strata/geostat.hpp"),
                ("src/session/a.cpp", "run/x.hpp"), ("src/lu/a.cpp", "session/x.hpp"),
                ("src/session/a.cpp", "run/run.hpp"), ("src/cholesky/a.hpp", "session/a.hpp"),
                ("src/lu/a.cpp", "session/a.hpp"), ("src/qr/a.cpp", "session/a.hpp"),
                ("src/sparse/a.cpp", "session/a.hpp"), ("src/geostat/a.cpp", "session/a.hpp"),
                ("include/strata/strata.hpp", "strata/io.hpp"), ("cli/a.cpp", "strata/io.hpp"),
                ("include/strata/options.hpp", "strata/machine.hpp")]:
            self.expect_clean(self.include(path, target))

    def test_includes_rightward_or_sideways(self):
        for path, target in [
                ("src/base/a.hpp", "scalar/dispatch.hpp"), ("src/matrix/a.cpp", "store/x.hpp"),
                ("src/store/a.cpp", "device/device.hpp"), ("src/schedule/a.cpp", "store/x.hpp"),
                ("src/run/a.cpp", "cholesky/x.hpp"), ("src/run/a.cpp", "session/x.hpp"),
                ("src/session/a.cpp", "cholesky/x.hpp"), ("src/cholesky/a.cpp", "lu/x.hpp"),
                ("src/krylov/a.cpp", "sparse/x.hpp"), ("src/io/a.cpp", "strata/cholesky.hpp"),
                ("src/run/a.hpp", "session/x.hpp"), ("src/session/a.cpp", "cholesky/x.hpp"),
                ("src/session/a.cpp", "lu/x.hpp"), ("src/report/a.cpp", "cli/app.hpp"),
                ("src/report/a.cpp", "bench/peers.hpp"),
                ("src/io/a.cpp", "device/device.hpp"), ("src/geostat/a.cpp", "io/csv.hpp"),
                ("src/report/a.cpp", "strata/io.hpp"), ("src/run/a.cpp", "strata/strata.hpp"),
                ("include/strata/machine.hpp", "strata/cholesky.hpp")]:
            self.expect_finding(self.include(path, target), f"may not include {target}")

    def test_rooms_have_walls(self):
        for path, target in [
                ("src/kernels/fronts/a.cpp", "kernels/dense/b.hpp"), ("src/kernels/tall/a.cpp", "kernels/tall/b.hpp"),
                ("src/kernels/table_a.cpp", "kernels/krylov/b.hpp"), ("src/sparse/a.cpp", "sparse/fronts/b.hpp"),
                ("src/sparse/fronts/a.cpp", "sparse/ordering/b.hpp"), ("src/qr/a.cpp", "kernels/tall/b.hpp"),
                ("src/kernels/fronts/a.cpp", "schedule/b.hpp")]:
            self.expect_clean(self.include(path, target))
        for path, target in [
                ("src/kernels/backend/a.cpp", "kernels/dense/b.hpp"), ("src/kernels/tall/a.cpp", "kernels/fronts/b.hpp"),
                ("src/kernels/dense/a.cpp", "kernels/tall/b.hpp"), ("src/kernels/dense/a.cpp", "kernels/b.hpp"),
                ("src/sparse/ordering/a.cpp", "sparse/fronts/b.hpp"), ("src/sparse/fronts/a.cpp", "sparse/b.hpp")]:
            self.expect_finding(self.include(path, target), f"may not include {target}")
        self.expect_finding({"src/kernels/attic/a.cpp": ""}, "belongs to no room")

    def test_the_command_line_uses_what_is_public_or_listed(self):
        for target in ["strata/strata.hpp", "cli/app.hpp", "bench/peers.hpp", "base/check.hpp",
                       "cholesky/planning.hpp", *RULES["CLI_PRIVATE"]]:
            for path in ["cli/a.cpp", "cli/a.hpp"]:
                self.expect_clean(self.include(path, target))
        self.expect_clean({"cli/a.cpp": "#include <vector>\n#include <fmt/core.h>\n"})
        for target in ["run/run.hpp", "cholesky/tile_factor.hpp", "run/device_set.hpp",
                       "session/session.hpp", "report/page.hpp", "tests/cli/program.hpp",
                       "check.hpp"]:
            for path in ["cli/a.cpp", "cli/a.hpp"]:
                self.expect_finding(self.include(path, target), f"may not include {target}")
        self.expect_finding({"cli/a.cpp": "#include <run/run.hpp>\n"}, "may not include run/run")
        self.expect_finding(self.include("cli/a.cpp", "strata/new.hpp"), "no public header")
        # Others that are no layer are free.
        self.expect_clean(self.include("tests/run/a.cpp", "run/run.hpp"))
        self.expect_clean(self.include("bench/a.cpp", "run/run.hpp"))

    def test_the_list_for_the_command_line_is_no_longer_than_its_use(self):
        root = TIDY.parent.parent
        used = "".join(path.read_text(encoding="utf-8") for path in (root / "cli").glob("*.?pp"))
        for header, reason in RULES["CLI_PRIVATE"].items():
            self.assertIn(f'#include "{header}"', used)
            self.assertTrue((root / "src" / header).is_file(), header)
            self.assertTrue(reason)

    def test_unknown_layers(self):
        self.expect_finding({"src/misc/a.cpp": "int a;\n"}, "src/misc/a.cpp:1: belongs to no layer")
        self.expect_finding({"include/strata/new.hpp": TOP}, "belongs to no layer")
        self.expect_finding(self.include("src/run/a.cpp", "strata/new.hpp"), "no public header")

    def test_public_headers_stay_public(self):
        self.expect_finding(self.include("include/strata/io.hpp", "base/check.hpp"), "private")
        for target in ["fmt/format.h", "zlib.h", "nlohmann/json.hpp", "boost/math.hpp"]:
            self.expect_finding({"include/strata/io.hpp": TOP + f"#include <{target}>\n"},
                                f"io.hpp:3: public header includes {target}")

    def test_headers_that_take_long_are_in_one_file(self):
        for target, only in [("nlohmann/json.hpp", "src/base/json.cpp"),
                             ("CLI/CLI.hpp", "cli/command.cpp")]:
            text = f"#include <{target}>\n"
            self.expect_clean({only: text})
            for path in ["cli/a.cpp", "cli/app.hpp", "src/base/a.cpp", "tests/cli/a.cpp",
                         "bench/program/a.cpp"]:
                self.expect_finding({path: (TOP if path.endswith("hpp") else "") + text},
                                    f"{target} outside {only}")

    def test_cuda_stays_in_its_folders(self):
        cuda = "#include <cuda_runtime.h>\n"
        self.expect_clean({"src/device/a.cu": cuda, "src/kernels/b_cuda.hpp": TOP + cuda})
        self.expect_finding({"src/run/a.cpp": "\n" + cuda}, "src/run/a.cpp:2: CUDA include")
        self.expect_finding({"src/run/a.cu": "int a;\n"}, "CUDA source outside")

    def test_lengths(self):
        self.expect_clean({"src/run/a.cpp": "//\n" * 600, "src/run/b.cpp": "//" + "x" * 98 + "\n"})
        self.expect_finding({"src/run/a.cpp": "//\n" * 601}, "a.cpp:601: file of 601 lines")
        self.expect_finding({"tests/run/a.cpp": "\n//" + "x" * 99}, "a.cpp:2: line of 101 columns")
        # Columns are characters, not bytes.
        self.expect_clean({"src/run/a.cpp": "//" + "ν" * 98 + "\n"})

    def test_sentences_of_comments_are_short(self):
        def sentence(words):
            return "A" + " b" * (words - 1)
        limit = RULES["SENTENCE_WORDS"]
        long = re.sub(r"((?:\S+ ){9}\S+) ", r"\1\n", sentence(limit + 1) + ".")  # in lines of ten words

        def marked(mark, text=long, indent=""):
            return "".join(f"{indent}{mark} {line}\n" for line in text.split("\n"))
        for text, line in [(marked("//"), 1), ("int a;\n" + marked("///", indent="  "), 2),
                           ("// A. B.\n//\n" + marked("//"), 3), ("// * A.\n" + marked("//", "* " + long), 2),
                           (f"int a;  ///< {sentence(limit - 5)}\n        ///< {sentence(6)}\nint b;\n", 1),
                           ("auto s = \"//\";\n" + marked("//"), 2)]:
            self.expect_finding({"cli/a.cpp": text}, f"a.cpp:{line}: sentence of {limit + 1} words")
        half = sentence(limit // 2 + 1)
        for text in [f"// {sentence(limit)}\n", f"// {half}.\n// {half}?\n// ({half}!)\n// {half}.\n", f"// {half}\n//\n// {half}\n",
                     f"// {half}:\n// * {half}\n// * {half}\n", f"// {half}:\n// a    {half}\n// b    {half}\n",
                     f"// {half}\n/// {half}\n", f"// {half}\nint a;\n// {half}\n", f"int a;  // {half}\nint b;  // {half}\n",
                     f"// {sentence(limit)}\n// = + (Author, \"Title of a book\", 1999) ·\n", f'auto s = R"(\n// {long})";\n']:
            self.expect_clean({"cli/a.cpp": text})

    def test_sentences_of_comments_open_with_their_subject(self):
        for text, line in [("/// Of each device.\nint a;\n", 1), ("int a;\n  // Of a, the sum.\n", 2),
                           ("int a;  ///< Of each device.\n", 1), ("// A sum. Of each\n// device.\n", 1),
                           ("// A list:\n// * Of each device.\n", 2), ("// A.\n//\n// Of each device.\n", 3)]:
            self.expect_finding({"cli/a.cpp": text}, f"a.cpp:{line}: a sentence opens with its subject")
        self.expect_clean({"cli/a.cpp": "// Offsets of each device. The sum\n// Of of each.\nint a;  ///< of each device\n"
                                        "auto s = \"// Of each\";\n"})

    def test_sizes(self):
        kib = "x" * 1024
        self.expect_clean({"docs/a.svg": 512 * kib, "build/a.so": 600 * kib, ".git/a": 600 * kib})
        self.expect_finding({"a.whl": 513 * kib}, "a.whl:1: file of 513 KiB")
        self.expect_finding({"docs/images/a.png": 600 * kib}, "docs/images/a.png:1: file of 600")

    def test_long_functions(self):
        def function(head, lines):
            return {"src/run/a.cpp": f"namespace a {{\n{head} {{\n" + "  f();\n" * (lines - 2) +
                                     "}\n}\n"}
        for head in ["void f(int a)", "template <class T>\nauto X<T>::f() const -> int",
                     "struct stat f(int)", "X::X(int a) : a_(a)", 'extern "C" int f()']:
            extra = head.count("\n")
            self.expect_clean(function(head, 70))
            self.expect_finding(function(head, 71), f"a.cpp:{2 + extra}: function of 71 lines")
        for head in ["struct A", "class A : public B", "enum class E : int", "namespace b"]:
            self.expect_clean(function(head, 200))
        self.expect_clean({"src/run/a.cpp": "void f() {\n" + 'g("{");  // {\n' * 68 + "}\n" +
                                            "void g() {\n" + "h();\n" * 68 + "}\n"})

    def test_headers_begin_with_their_contract(self):
        self.expect_finding({"src/run/a.hpp": "// Contract.\n#pragma once\n"}, "#pragma once")
        self.expect_finding({"src/run/a.hpp": "#pragma once\n\n#include <vector>\n"}, "contract")

    def test_banned_words(self):
        for line, word in [
                ("int* a = new int[3];", "raw new"), ("auto a = new (std::nothrow) A;", "raw new"),
                ("delete a;", "raw delete"), ("delete[] a;", "raw delete"),
                ("void* a = malloc(3);", "C memory"), ("std::free(a);", "C memory"),
                ("cudaMalloc(&p, 3);", "CUDA memory"), ("cudaFreeAsync(p, s);", "CUDA memory"),
                ("printf(\"a\");", "printing"), ("std::cout << 1;", "printing"),
                ("std::cerr << 1;", "printing"), ("using namespace std;", "using namespace std"),
                ("report.planned_traffic.floor_bytes += 1;", "planned traffic"),
                ("static_cast<Traffic&>(r.planned_traffic) = t;", "planned traffic")]:
            self.expect_finding({"src/run/a.cpp": line + "\n"}, f"a.cpp:1: banned: {word}")
        for word in ["TO" "DO", "FIX" "ME", "XX" "X"]:
            self.expect_finding({"src/run/a.cpp": f"// {word}: later\n"}, f"unfinished: {word}")

    def test_words_that_are_allowed(self):
        self.expect_clean({
            "src/run/a.cpp": "A(const A&) = delete;\nauto p = ::operator new(3, al);\n"
                             "::operator delete(p, al);\nauto q = new (p) A{};\n// new printf( in a comment, malloc(3)\n"
                             "auto s = \"new delete printf(\";\nauto n = 1'000'000; snprintf(b);\n"
                             "int renewed = newest; auto r = R\"(delete x)\";\n",
            "src/device/a.cu": "cudaMalloc(&p, 3);\n",
            "src/session/report.cpp": "r.planned_traffic.floor_bytes = 1;\n",
            "src/run/b.cpp": "if (r.planned_traffic == t) f();\n",
            "cli/a.cpp": "std::cout << 1;\n", "tests/run/a_test.cpp": "printf(\"a\");\n"})

    def test_a_type_is_defined_once(self):
        def header(body, namespace="strata"):
            return f"{TOP}namespace {namespace} {{\n{body}\n}}  // namespace {namespace}\n"
        for first, second in [("struct A {};", "class A final : public B {};"),
                              ("enum class A : int { a };", "union A {};")]:
            self.expect_finding({"src/run/a.hpp": header(first), "tests/run/b.hpp": header(second)},
                                "b.hpp:4: strata::A is also defined in src/run/a.hpp")
        self.expect_clean({
            "src/run/a.hpp": header("struct A {\n  struct C {};\n};\nclass D;"),
            "src/run/b.hpp": header("struct A {};", "strata::test"),
            "src/run/c.hpp": header("class A;\nstruct A<int> {};\nstruct D {\n  struct C {};\n};")})

    def test_exit_status(self):
        for text, status in [("int a;\n", 0), ("int* a = new int;\n", 1)]:
            with tempfile.TemporaryDirectory() as root:
                (pathlib.Path(root) / "src/run").mkdir(parents=True)
                (pathlib.Path(root) / "src/run/a.cpp").write_text(text, encoding="utf-8")
                result = subprocess.run([sys.executable, str(TIDY), "--root", root],
                                        capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, status)
            self.assertEqual(result.stdout, "src/run/a.cpp:1: banned: raw new\n" * status)

    def test_headers_compile_alone(self):
        bad = {"src/run/a.hpp": TOP + "inline std::string f() { return {}; }\n"}
        self.expect_finding(bad, "src/run/a.hpp:3: does not compile alone", headers=True)
        self.expect_clean({"src/run/a.hpp": TOP + "#include <string>\ninline std::string s;\n"},
                          headers=True)
        self.expect_finding({"src/run/a.hpp": TOP + "inline Missing f();\n"},
                            "src/run/a.hpp:1: does not compile alone", headers=True)
        # Headers are compiled behind those that they include, never behind others that would hide what they lack.
        struct, user = TOP + "struct B {};\n", TOP + "inline B f() { return {}; }\n"
        both = TOP + '#include "run/b.hpp"\n#include "run/a.hpp"\n'
        self.expect_finding({"src/run/a.hpp": user, "src/run/b.hpp": struct, "src/run/c.hpp": both},
                            "src/run/a.hpp:1: does not compile alone", headers=True)
        self.expect_clean({"src/run/a.hpp": TOP + '#include "run/b.hpp"\ninline B f() { return {}; }\n',
                           "src/run/b.hpp": struct, "src/run/c.hpp": both}, headers=True)

    def test_what_headers_use_of_the_standard_library(self):
        user = TOP + '#include "run/b.hpp"\ninline std::string f() { return {}; }\n'
        self.expect_clean({"src/run/a.hpp": user, "src/run/b.hpp": TOP + "#include <string>\n"})
        self.expect_finding({"src/run/a.hpp": user, "src/run/b.hpp": TOP + "#include <vector>\n"},
                            "src/run/a.hpp:4: does not compile alone: std::string without <string>")
        self.expect_finding({"src/run/a.hpp": TOP + "#include <regex>\ninline std::regex r;\n"},
                            "src/run/a.hpp:4: std::regex is not in the table")

    def test_what_headers_use_of_others(self):
        uses = TOP + "%sinline auto f() { return fmt::format(\"a\"); }\n"
        self.expect_clean({"src/run/a.hpp": uses % "#include <fmt/core.h>\n"})
        self.expect_finding({"src/run/a.hpp": uses % ""},
                            "src/run/a.hpp:3: does not compile alone: fmt:: without <fmt/format.h>")


if __name__ == "__main__":
    unittest.main()
