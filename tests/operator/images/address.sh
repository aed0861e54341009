# The network is this machine's: what would listen at every address listens at its pod's.
address=$(sed -n "2s/	.*//p" "$PROBE_MOUNT_ROOT/.hosts")
for each; do
  shift
  case "$each" in *=:[0-9]*) each="${each%%=*}=$address:${each##*=:}" ;; esac
  set -- "$@" "$each"
done
export PATH="$PATH:/usr/sbin:/sbin"
