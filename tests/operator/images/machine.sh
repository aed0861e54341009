# The programs of this machine stand for those of an image, but for its own; names are those of the pod.
for each in /* /opt/*; do
  case $each in /opt|/var|/tmp|/etc) continue ;; esac
  if [ -L $each ]; then cp -P $each $root$each; continue; fi
  [ ! -d $each ] || { mkdir -p $root$each && mount --rbind $each $root$each; }
done
mkdir -p $root/tmp $root/etc $root/.etc && mount --rbind /etc $root/.etc
for each in /etc/*; do ln -s /.etc/${each##*/} $root/etc/; done
ln -sf $tree/.hosts $root/etc/hosts
for each in $(cd $tree && find . -mindepth 1 -maxdepth 1 ! -name ".*" ! -name etc); do
  mkdir -p $root/$each && mount --rbind $tree/$each $root/$each
done
