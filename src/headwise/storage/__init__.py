"""Files and directories that are complete or absent: written under a temporary name, then renamed.

files       one file: replaced in one step; JSON that contains its own checksum
manifest    a directory: `MANIFEST.json` lists every file with size and SHA-256
publishing  a directory appears, or replaces another, in one step
"""

from headwise.storage.files import (
    INCOMPLETE,
    MAX_JSON_BYTES,
    flush_to_disk,
    publish_file,
    read_json,
    read_sealed_json,
    seal_of,
    sha256_of,
    write_bytes,
    write_json,
    write_sealed_json,
    write_text,
)
from headwise.storage.manifest import (
    FORMAT_VERSION,
    MANIFEST,
    manifest_digest,
    read_manifest,
    refuse_sealed,
    verify_directory,
    verify_listed,
    write_manifest,
)
from headwise.storage.publishing import (
    REPLACED,
    RETIRED,
    find_leftovers,
    is_leftover,
    publish_directory,
    refuse_existing,
    remove_directory,
    remove_leftovers,
)

__all__ = [
    "FORMAT_VERSION",
    "INCOMPLETE",
    "MANIFEST",
    "MAX_JSON_BYTES",
    "REPLACED",
    "RETIRED",
    "find_leftovers",
    "flush_to_disk",
    "is_leftover",
    "manifest_digest",
    "publish_directory",
    "publish_file",
    "read_json",
    "read_manifest",
    "read_sealed_json",
    "refuse_existing",
    "refuse_sealed",
    "remove_directory",
    "remove_leftovers",
    "seal_of",
    "sha256_of",
    "verify_directory",
    "verify_listed",
    "write_bytes",
    "write_json",
    "write_manifest",
    "write_sealed_json",
    "write_text",
]
