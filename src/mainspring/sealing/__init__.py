"""Seals: what becomes of bodies between the engine and the store, so that they are smaller there, or secret.

    seals       the protocol, several seals as one, and what an erased body looks like
    compressed  zlib, for bodies that are worth it
    encrypted   AES-GCM, under keys that can be rotated and, for each subject, destroyed
    keys        where keys come from

A sealed body begins with a byte that no JSON begins with. So a body that was written before a seal was put on, or under
another one, is still read, and a seal can be put on a database that is in use.
"""

from mainspring.sealing.compressed import Compressed
from mainspring.sealing.encrypted import Encrypted
from mainspring.sealing.keys import FileKeys, Key, Keys, StaticKeys
from mainspring.sealing.seals import ERASED, About, RenewingSeal, Seal, Seals

__all__ = [
    "ERASED",
    "About",
    "Compressed",
    "Encrypted",
    "FileKeys",
    "Key",
    "Keys",
    "RenewingSeal",
    "Seal",
    "Seals",
    "StaticKeys",
]
