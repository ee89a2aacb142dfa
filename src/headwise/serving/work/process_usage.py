"""Reads the memory and the processor time of a process, as Linux reports them under /proc."""

from pathlib import Path


def resident_bytes(pid: int | None = None) -> int:
    """Resident memory of a process, by default this one; 0 where /proc does not exist."""
    try:
        statm = Path(f"/proc/{pid or 'self'}/statm").read_text(encoding="ascii")
        return int(statm.split()[1]) * 4096
    except OSError:
        return 0


def cpu_ticks(pid: int) -> int | None:
    """Processor time a process has used; None where /proc does not tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        fields = stat.rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, IndexError, ValueError):
        return None
