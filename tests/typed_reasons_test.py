#!/usr/bin/python3
"""No code below src/ decides by the words of a message: codes, kinds and fields do that.

usage: typed_reasons_test.py SOURCE_ROOT

Looks for functions that compare or search text and get a message: a result of gbx_status_message() and the like, or a
variable with a message's name. The search itself is tested on planted lines.
"""
import pathlib
import re
import sys

SEARCHES = re.compile(r"\b(strstr|strcasestr|strcmp|strncmp|strcasecmp|strncasecmp|strchr|strrchr|strpbrk|strtok_r|strtok|strspn|strcspn"
                      r"|memmem|memcmp|fnmatch|sscanf|regexec)\s*\(")
MESSAGES = re.compile(r"\b(gbx_status_message|gbx_reader_end_text|gbx_record_end_text|gbx_code_name)\s*\(|"
                      r"\b(?:reason|reasons|message|error|refusal|sentence|why|why_not|run_end|stop_text|status_text)\b(?!\s*\()")
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)

# File below src/, the call, and why it decides nothing.
ALLOWED = [
    ("store/reader.c", 'strcmp(sentence, "")', "glassbox 0.1.0 wrote nothing else: the one place that takes the text of END for more"),
    ("store/reader.c", "strncmp(sentence, lost, strlen(lost))", "a manifest without its journal has only the sentence"),
    ("replay/check/check_report.c", "strcmp(report->reasons[count - 1 - i], text)", "equal sentences are kept once"),
    ("replay/check/check_report.c", "strcmp(a->reason, b->reason)", "equal sentences are one line of the report"),
    ("diagnose/diagnose.c", "strncmp(at, reason, length)", "equal sentences are said once"),
    ("diagnose/lines.c", "strcmp(other, why)", "equal sentences are said once"),
    ("report/diagnosis_report.c", "strcmp(a->why, b->why)", "equal sentences are one line of the report"),
]

PLANTED = [
    ('if (strstr(gbx_status_message(status), "no memory"))', True),
    ('if (strcmp(gbx_reader_end_text(reader), "ok") == 0)', True),
    ('char *end = strstr(result->refusal, ": ");', True),
    ('is = strncmp (\n    job->error,\n "replaying", 9)', True),
    ('last = strrchr(swap.reason, 59);', True),
    ('found = !strcmp(names[i], reasons[i]);', True),
    ('/* strcmp(reason, "x") */ strcmp(name, "reason")', False),
    ('strcmp(path, "message"); // strcmp(message, 0)', False),
    ('strcmp(own->name, kernel->name) != 0', False),
    ('strcmp(reason_names[i], name) != 0', False),
    ('gbx_fail(code, "%s", gbx_status_message(status)), strcmp(a, b)', False),
]


def blank(match):
    """Blanks out strings and comments; lines stay where they are."""
    text = match.group(0)
    return '""' if text.startswith('"') else "\n" * text.count("\n")


def arguments(text, start):
    """The text between the parenthesis before `start` and its partner."""
    depth = 1
    for end in range(start, len(text)):
        depth += (text[end] == "(") - (text[end] == ")")
        if depth == 0:
            return text[start:end]
    return text[start:]


def findings(text):
    """(line, call) of every text function that gets a message."""
    code = COMMENT.sub(blank, text)
    for match in SEARCHES.finditer(code):
        given = arguments(code, match.end())
        if MESSAGES.search(given):
            yield code.count("\n", 0, match.start()) + 1, f"{match.group(1)}({' '.join(given.split())})"


def main():
    source = pathlib.Path(sys.argv[1]) / "src"
    wrong = [f"planted, found {not is_found}: {text}" for text, is_found in PLANTED if bool(list(findings(text))) != is_found]
    unused = set(ALLOWED)
    files = [path for path in sorted(source.rglob("*.[ch]")) if not path.stem.endswith("_test")]
    for path in files:
        name = str(path.relative_to(source))
        for line, call in findings(path.read_text()):
            allowed = {entry for entry in ALLOWED if entry[0] == name and entry[1] == call}
            unused -= allowed
            if not allowed:
                wrong.append(f"src/{name}:{line}: {call} decides by the words of a message; give it a code or a field")
    wrong += [f"allowed, and not there: {entry}" for entry in sorted(unused)]
    if len(files) < 100:
        wrong.append(f"only {len(files)} files found below {source}")
    print("\n".join(wrong))
    print(f"{len(files)} files, {len(PLANTED)} planted lines, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
