"""Pseudo terminals: a container may have none."""
import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading

END = b"\0the end of what was printed\0"


def are_there():
    """Whether a terminal can be opened; prints a line if not, and tests leave out what needs one."""
    try:
        for descriptor in pty.openpty():
            os.close(descriptor)
    except OSError as error:
        print(f"no pseudo terminal can be opened here ({error}): what is shown on one is not tested")
        return False
    return True


def run(columns, arguments, environment=None):
    """What reaches a terminal of this many columns, and the exit code.

    This side keeps the terminal open and marks the end itself: a read just when the last writer closes may fail before
    it has returned everything that was written.
    """
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    with subprocess.Popen(list(map(str, arguments)), stdin=subprocess.DEVNULL, stdout=follower, stderr=follower,
                          env=environment) as process:
        def mark_end():
            process.wait()
            os.write(follower, END)

        marker = threading.Thread(target=mark_end)
        marker.start()
        printed = b""
        while not printed.endswith(END):
            printed += os.read(leader, 1 << 16)
        marker.join()
    os.close(follower)
    os.close(leader)
    return printed.removesuffix(END).decode().replace("\r\n", "\n"), process.returncode
