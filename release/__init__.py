"""What a release is made of: which packages it brings, under which licences, and on which Pythons it was tried.

python -m release.sbom        the bill of materials, as CycloneDX
python -m release.licences    a table of licences; fails for one that was not agreed to
python -m release.everywhere  the tests on every interpreter that the machine has
"""
