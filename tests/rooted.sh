# The volumes of a pod at their paths, the program, the authority of the local cloud where UBI has its certificates. The
# tree itself is there, too, for the local kubelet has put its path before those in arguments.
tree=$1 root=$2 ca=$3 shared=$4 program=$5
shift 5
mkdir -p $root && mount -t tmpfs tmpfs $root
mkdir -p $root/proc $root/dev $root/tmp $root/usr/bin $root/etc/pki/ca-trust/extracted/pem
mount --rbind /proc $root/proc && mount --rbind /dev $root/dev
for each in $(cd $tree && find . ./etc -mindepth 1 -maxdepth 1 ! -name ".*" ! -name etc ! -name pki 2>/dev/null); do
  mkdir -p $root/$each && mount --rbind $tree/$each $root/$each
done
mkdir -p $root$tree && mount --rbind $tree $root$tree
[ -z "$shared" ] || mount --rbind $shared $root/tmp
cp $ca $root/ca.crt && cp $ca $root/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem
touch $root/usr/bin/program && mount --bind $program $root/usr/bin/program
exec chroot $root /usr/bin/program "$@"
