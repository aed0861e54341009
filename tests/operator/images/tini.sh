#!/bin/sh
# Its options end at the first `--`, before which getopt(3) takes the program from its place. It reaps children, too.
if [ "$2" = -- ]; then program=$1; shift; shift; set -- "$program" "$@"; fi
[ "$1" != -- ] || shift
exec "$@"
