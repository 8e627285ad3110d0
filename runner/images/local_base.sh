#!/bin/sh
# A Debian root file system with Python as a tar file, for machines that reach a Debian mirror but no image registry.
# Usage: local_base.sh OUT.tar   (needs mmdebstrap; about half a minute)
set -eu
out=$1
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-1760000000}"
for unneeded in doc man locale info lintian bug; do
    set -- "$@" --dpkgopt="path-exclude=/usr/share/$unneeded/*"
done
shift
exec mmdebstrap --quiet --variant=minbase --include=ca-certificates,python3,libstdc++6,libgomp1 \
    --aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Check-Valid-Until "false"' "$@" \
    --customize-hook='ln -sf python3 "$1/usr/bin/python"' \
    --customize-hook='rm -rf "$1"/var/log/* "$1"/var/cache/ldconfig/aux-cache' \
    --customize-hook='find "$1/usr" -name __pycache__ -prune -exec rm -rf {} +' \
    trixie "$out"
