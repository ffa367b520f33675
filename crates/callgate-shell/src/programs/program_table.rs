//! The table of programs: names, operands, flags.

use super::Operands::{self, *};

/// Names, of which those joined by `/` are of one program; what the operands are; and flags (see [`FlagTable`](super::flag_table::FlagTable)).
pub(super) const PROGRAMS: &[(&str, Operands, &str)] = &[
    // Files.
    (
        "rm/grm",
        Writes,
        "-r,-R,--recursive -f,--force -i -I --interactive -d,--dir -v,--verbose --one-file-system --no-preserve-root --preserve-root",
    ),
    ("rmdir/grmdir unlink", Writes, "-p,--parents -v,--verbose --ignore-fail-on-non-empty"),
    ("trash/trash-put/rmtrash gio", Writes, ""),
    ("shred srm wipe scrub", Writes, "-f,--force -u,--remove -z,--zero -n,--iterations= -s,--size= -v -x"),
    ("touch/gtouch", Writes, "-a -c,--no-create -m -h -d,--date= -r,--reference=r -t= --time="),
    ("mkdir/gmkdir mkfifo mknod", Writes, "-p,--parents -m,--mode= -v,--verbose -Z"),
    ("truncate", Writes, "-s,--size= -c,--no-create -r,--reference=r -o"),
    ("tee/gtee sponge", Writes, "-a,--append -i,--ignore-interrupts -p --output-error"),
    (
        "cp/gcp install/ginstall",
        ReadsThenWrites,
        "-r,-R,--recursive -a,--archive -f,--force -n,--no-clobber -i -v,--verbose -p --preserve -u,--update -L -P -H -d -s -l,--link -x -T -t,--target-directory=w -m,--mode= -o,--owner= -g,--group= -D --backup -S,--suffix=",
    ),
    (
        "mv/gmv rename",
        Moves,
        "-f,--force -n,--no-clobber -i -v,--verbose -u,--update -T -t,--target-directory=w -S,--suffix= -b",
    ),
    (
        "ln/gln link",
        ReadsThenWrites,
        "-s,--symbolic -f,--force -n,--no-dereference -r,--relative -v,--verbose -i -T -b -t,--target-directory=w",
    ),
    (
        "rsync",
        ReadsThenWrites,
        "-a,--archive -v,--verbose -r,--recursive -z,--compress -n,--dry-run -e,--rsh=t --delete --exclude= --include= --exclude-from=r --files-from=r -P -p -t -u -l -L -h --progress --remove-source-files --rsync-path= --bwlimit= --log-file=w --chmod= --chown=",
    ),
    (
        "scp sftp",
        ReadsThenWrites,
        "-r -p -q -v -C -B -3 -4 -6 -P= -i=r -F=r -o= -l= -c= -J= -S=t -D= -b=r -s=",
    ),
    ("chmod/gchmod", SkipThenWrites, "-R,--recursive -v,--verbose -c -f --reference=r"),
    ("chown/gchown chgrp", SkipThenWrites, "-R,--recursive -h -v,--verbose -c -f --from= --reference=r"),
    ("chattr chflags setfacl setfattr xattr", SkipThenWrites, "-R -V -f -m= -x= -b -d -w"),
    ("dd/gdd", Assignments, ""),
    ("split csplit", Reads, "-b,--bytes= -l,--lines= -n,--number= -a= -d --filter=t"),
    // Disks and systems.
    (
        "mkfs mkfs.ext2 mkfs.ext3 mkfs.ext4 mkfs.xfs mkfs.btrfs mkfs.vfat mke2fs mkswap wipefs",
        Writes,
        "-t= -L= -F -f -q -n -U= -O= -b=",
    ),
    (
        "fdisk sfdisk cfdisk parted gdisk sgdisk blkdiscard",
        Writes,
        "-l,--list -s -a -f -Z,--zap-all -o -n= -d=",
    ),
    ("mount umount", Other, "-t= -o= -a -r -w -l -f"),
    ("kill pkill killall", Other, "-s,--signal= -l -u= -g= -P= -f -x -n -o -9"),
    (
        "systemctl service launchctl",
        Subcommand,
        "--user --system --now -q --no-pager -n= -t,--type= -p,--property= -f,--force",
    ),
    ("crontab", Reads, "-l -r -e -i -u="),
    ("at batch", Other, "-f=r -m -l -d= -q= -t="),
    ("iptables ip6tables nft ufw", Subcommand, ""),
    ("sysctl", Other, "-w -p= -a -n"),
    (
        "useradd usermod userdel adduser deluser groupadd passwd chpasswd visudo",
        Other,
        "-a -G= -g= -u= -s= -d= -m -M -c= -aG= -f=",
    ),
    // Reading.
    (
        "cat/gcat tac nl less more most head/ghead tail/gtail bat/batcat strings xxd od hexdump base64 base32 md5sum sha1sum sha256sum sha512sum shasum cksum wc file stat readlink realpath cmp comm diff sort uniq cut column paste join rev fold fmt expand iconv zcat bzcat xzcat zless xmllint csvtool gunzip bunzip2 unxz zstdcat open xdg-open",
        Reads,
        "-n,--lines= -c,--bytes= -f,--follow -d,--delimiter= -k,--key= -t,--field-separator= -o,--output=w -w -l -m -s -r -u -q -v -i -e -a -b -h -A -N= -T= -S= -C= -U= --arg= --argjson= --slurpfile= --rawfile= --color= --tabs=",
    ),
    (
        "jq yq xq tomlq",
        SkipThenReads,
        "-r -c -n -e -s -S -j -a -C -M -f,--from-file=r --tab --indent= --raw-output --slurp",
    ),
    (
        "grep/egrep/fgrep/ggrep zgrep rg ag ack ugrep",
        SkipThenReads,
        "-e,--regexp= -f,--file=r -r,-R,--recursive -i -v -n -l -L -c -o -w -x -q -s -h -H -E -F -P -z -a -I -A,--after-context= -B,--before-context= -C,--context= -m,--max-count= -g,--glob= -t,--type= -T,--type-not= -j,--threads= -d= -D= --include= --exclude= --exclude-dir= --exclude-from=r --color,--colour= --pre=t --pre-glob= --max-depth= --sort= --iglob= --max-filesize= --ignore-file=r -u --hidden --files -S -U --replace=",
    ),
    (
        "sed/gsed",
        Code,
        "-e,--expression=c -f,--file=r -i,--in-place -n,--quiet,--silent -E,-r,--regexp-extended -s,--separate -z,--null-data -u,--unbuffered -l,--line-length=",
    ),
    (
        "awk/gawk/mawk/nawk",
        Code,
        "-f,--file=r -F,--field-separator= -v,--assign= -e,--source=c -i,--include= -l,--load= -o,--pretty-print -p,--profile -E,--exec=r",
    ),
    (
        "ls/gls dir vdir exa eza tree du df",
        Reads,
        "-L= -I= -P= -T= -w= -d -h -s --color= --max-depth= --block-size= --sort= --time= --level=",
    ),
    (
        "find/gfind",
        Other,
        "-name= -iname= -path= -ipath= -regex= -iregex= -type= -maxdepth= -mindepth= -mtime= -mmin= -atime= -ctime= -newer= -size= -perm= -user= -group= -printf= -fprintf=w -fprint=w -fprint0=w -fls=w -exec -execdir -ok -okdir -delete -print -print0 -prune -not -or -and -o -a -empty -L -H -P -quit -depth -xdev -follow -ls -executable -readable -writable",
    ),
    (
        "fd/fdfind",
        Other,
        "-e,--extension= -t,--type= -d,--max-depth= -E,--exclude= -x,--exec -X,--exec-batch -H -I -u -a -g -j= -S= --changed-within= -c,--color=",
    ),
    // Archives.
    (
        "tar/gtar/bsdtar",
        Reads,
        "-c,--create -x,--extract -t,--list -r,--append -u,--update -z -j -J -v -p -k -O -P -f,--file= -C,--directory=w --exclude= -T,--files-from=r -X=r --strip-components= --transform= -I,--use-compress-program=t --to-command=t --checkpoint-action= --checkpoint= -F,--info-script=t --rsh-command=t --one-top-level= -a --zstd --wildcards",
    ),
    ("zip 7z/7za rar", Writes, "-r -q -e -j -9 -x= -i= -P= -T -TT=t -u -d -y -o"),
    ("unzip unrar", Reads, "-d=w -o -n -q -l -p -P= -x= -j -t"),
    (
        "gzip bzip2 xz zstd lz4 brotli compress uncompress",
        Writes,
        "-d -c -k -f -q -v -r -t -l -1 -9 -o=w -T= -S=",
    ),
    // Network.
    (
        "curl",
        Other,
        "-X,--request= -d,--data,--data-ascii= --data-raw= --data-binary= --data-urlencode= --json= -F,--form= --form-string= -T,--upload-file=r -H,--header= -o,--output=w -O,--remote-name -L,--location -s,--silent -S,--show-error -f,--fail -i,--include -I,--head -k,--insecure -v,--verbose -g -G,--get -u,--user= -A,--user-agent= -e,--referer= -b,--cookie= -c,--cookie-jar=w -x,--proxy= -m,--max-time= --connect-timeout= --retry= --retry-delay= -w,--write-out= -K,--config=r -E,--cert=r --key=r --cacert=r -D,--dump-header=w --output-dir=w -r,--range= -C,--continue-at= --resolve= --url= -Z -N -J -R --compressed --limit-rate= --create-dirs -4 -6 -# -q -n -p --netrc-file=r --interface= --unix-socket= --socks5= --variable= --trace=w --trace-ascii=w",
    ),
    (
        "wget",
        Other,
        "-O,--output-document=w -o,--output-file=w -a,--append-output=w -P,--directory-prefix=w -i,--input-file=r -q,--quiet -c,--continue -r,--recursive -l,--level= -k -p -N -nc -nv -v -S -t,--tries= -T,--timeout= -U,--user-agent= --header= --post-data= --post-file=r --body-data= --body-file=r --method= --user= --password= --http-user= --http-password= -A= -R= -D= -e,--execute= --limit-rate= --no-check-certificate --use-askpass=t --ca-certificate=r --certificate=r --load-cookies=r --save-cookies=w",
    ),
    (
        "http https httpie xh",
        Other,
        "-j -f -v -h -b -o,--output=w -d -a,--auth= -A= --session= --timeout= --proxy= --verify= --follow",
    ),
    (
        "nc/netcat ncat telnet socat",
        Other,
        "-e,--exec=t -c,--sh-exec=t -l,--listen -p= -s= -w= -i= -x= -X= -q= -u -v -z -n -k -4 -6 -d",
    ),
    (
        "ssh",
        Other,
        "-1 -2 -4 -6 -A -a -B= -b= -C -c= -D= -E=w -e= -F=r -f -G -g -I= -i=r -J= -K -k -L= -l= -M -m= -N -n -O= -o= -P= -p= -Q= -q -R= -S= -s -T -t -V -v -W= -w= -X -x -Y -y",
    ),
    ("ssh-keygen", Other, "-t= -b= -C= -f= -N= -P= -R= -l -y -q -p -F= -m= -e -i"),
    ("ssh-copy-id ssh-add gpg/gpg2 openssl", Other, ""),
    // Shells and interpreters.
    (
        "sh bash dash zsh ksh ash fish mksh rbash",
        Script,
        "-c --rcfile=r --init-file=r -O= +O= -o= -i -l,--login -e -u -x -v -n -s -r -p -f --norc --noprofile --posix",
    ),
    (
        "python/python2/python3/pypy/pypy3 ipython",
        Script,
        "-c=c -m= -W= -X= -u -B -I -E -s -S -O -v -q -V -i --version --help",
    ),
    (
        "node/nodejs deno bun tsx ts-node",
        Script,
        "-e,--eval=c -p,--print=c -r,--require=r --import=r --loader= --env-file=r -c,--check -i --inspect --test --watch -v --version",
    ),
    ("perl", Script, "-e=c -E=c -n -p -i -l -a -w -W -0 -F= -I= -M= -m= -c -t -T -v -x -d"),
    ("ruby", Script, "-e=c -n -p -i -l -a -w -r= -I= -C= -c -v -F="),
    ("php", Script, "-r=c -B=c -R=c -E=c -F=r -f=r -d= -c= -S= -t= -l -v -m -i -n"),
    ("lua/luajit", Script, "-e=c -l= -i -v"),
    ("Rscript R julia elixir erl iex", Script, "-e,--eval=c -E=c -E,--print=c -r= -L= -p= -q"),
    ("osascript", Script, "-e=c -l= -i -s="),
    (
        "pwsh/powershell",
        Code,
        "-c,-Command,-command=c -EncodedCommand,-enc,-e=c -File,-f=r -ExecutionPolicy= -NoProfile -NonInteractive",
    ),
    ("cmd", Code, ""),
    ("groovy scala jshell ghci clojure", Script, "-e=c"),
    ("sqlite3", Reads, "-cmd= -init=r -header -csv -json -line -column -separator= -readonly"),
    (
        "psql",
        Other,
        "-c,--command= -f,--file=r -d,--dbname= -h,--host= -p,--port= -U,--username= -W -w -t -A -q -x -o,--output=w -L=w -v,--set= -P= -F= -R= -1 -l",
    ),
    (
        "mysql/mariadb",
        Other,
        "-e,--execute= -h,--host= -u,--user= -p --password= -P,--port= -D,--database= -B -N -s -t -v",
    ),
    ("mongosh/mongo", Other, "--eval= -u,--username= -p,--password= --host= --port= -f,--file=r --quiet"),
    ("redis-cli", Subcommand, "-h= -p= -a= -n= -u= -x --user= --pass= --eval=r --no-auth-warning"),
    (
        "dropdb createdb pg_dump pg_dumpall pg_restore mysqldump mysqladmin mongodump mongorestore",
        Other,
        "-h,--host= -p,--port= -U,--username= -u,--user= -d,--dbname= -f,--file=w -F= -t= -n= -c,--clean -j= --if-exists -e -i",
    ),
    // Version control.
    (
        "git",
        Subcommand,
        "-C= -c= --git-dir= --work-tree= --namespace= --exec-path= -p,--paginate -P,--no-pager --bare --no-optional-locks -f,--force --force-with-lease --force-if-includes --mirror --prune --delete,-d -D -m,--message= -F,--file=r -a,--all -v,--verbose -q,--quiet -n,--dry-run -u,--set-upstream -b= -B= --hard --soft --mixed --amend --no-verify --no-edit --tags --staged --cached --oneline --stat --graph --format= --pretty= --author= --since= --until= --date= -S= -G= -L= -x -X= -i,--interactive --exec=t --tree-filter=t --index-filter=t --msg-filter=t --env-filter=t --commit-filter=t --parent-filter=t --tag-name-filter=t --upload-pack=t --receive-pack=t --config= --depth= --branch= --filter= --origin= --reference= --onto= --strategy= -s --abort --continue --skip --autostash --rebase --no-rebase --ff-only --squash --no-ff --global --system --local --unset --unset-all --get --get-all --list --add --replace-all --edit --output=w -o= --porcelain --short -r,--remotes",
    ),
    (
        "gh glab hub",
        Subcommand,
        "-R,--repo= -b,--body= -t,--title= -X,--method= -f,--raw-field= -F,--field= -H,--header= --json= -q,--jq= --template= -L,--limit= -s,--state= -l,--label= -a,--assignee= -B,--base= --head= -y,--yes --input=r --body-file=r --hostname=",
    ),
    ("hg svn jj", Subcommand, "-R= -m,--message= -r,--rev= -u= --username= --password= --config= -c="),
    // Builds and packages.
    (
        "cargo",
        Subcommand,
        "-p,--package= --manifest-path= -C= -Z= --config= -F,--features= --target= --target-dir=w -j,--jobs= --bin= --example= --test= --bench= --profile= -q,--quiet -v,--verbose --color= --message-format= --token= --registry= --index= --allow-dirty --dry-run -r,--release --workspace --all --locked --offline --frozen --all-features --no-default-features --all-targets --no-run --lib --bins --tests --path= --git= --branch= --tag= --rev= --version= --vers= --root=w",
    ),
    (
        "npm pnpm",
        Subcommand,
        "--prefix= -C,--dir= -w,--workspace= --registry= --loglevel= --tag= --otp= --access= -g,--global -D,--save-dev -E -P -O --silent -s --yes -y -F,--filter= -r,--recursive -c,--call=t --package= -f,--force --dry-run --userconfig=r --script-shell=t",
    ),
    ("yarn", Subcommand, "--cwd= -D,--dev --registry= --tag= --access= --silent -s --json --frozen-lockfile"),
    (
        "pip/pip3 pipx",
        Subcommand,
        "-r,--requirement=r -c,--constraint=r -e,--editable= -i,--index-url= --extra-index-url= -t,--target=w --prefix= -U,--upgrade -q -v --no-deps --user --break-system-packages --python= --proxy= --trusted-host= -f,--find-links=",
    ),
    (
        "uv poetry pdm hatch rye pipenv conda mamba",
        Subcommand,
        "-C,--directory= --project= -p,--python= -n,--name= -r,--requirement=r --with= --extra= --group= --index-url= --token= -q -v --no-sync --no-capture-output --env-file=r --package=",
    ),
    (
        "twine flit",
        Subcommand,
        "-r,--repository= --repository-url= -u,--username= -p,--password= --config-file=r -s -c=",
    ),
    (
        "go",
        Subcommand,
        "-C= -o=w -tags= -run= -bench= -count= -timeout= -p= -ldflags= -gcflags= -coverprofile=w -cover -race -v -x -n -exec=t -toolexec=t -mod= -modfile= -overlay=r -short -json",
    ),
    (
        "mvn/mvnw gradle/gradlew sbt ant bazel bazelisk buck2 rake just task invoke nox tox lein",
        ProjectScripts,
        "-f,--file=r -p= -P= -D= -q -B -pl= -am -x= --build-file=r -C= -j= -n,--dry-run",
    ),
    (
        "make/gmake ninja cmake meson",
        ProjectScripts,
        "-C,--directory= -f,--file=r -j,--jobs -n,--dry-run,--just-print -k -s -B --eval=t --build= -S= -G= -D= -t= -P=r -E",
    ),
    (
        "gem bundle composer dotnet nuget mix stack cabal swift flutter dart pub",
        Subcommand,
        "-v= -s,--source= -k,--api-key= -C= --path= -c= -o=",
    ),
    (
        "apt apt-get apk dnf yum pacman brew zypper snap port nix nix-env choco winget scoop",
        Subcommand,
        "-y,--yes -q -o= -t= -c= -S -R -U --no-install-recommends -f,--force",
    ),
    (
        "vsce ovsx clasp wrangler vercel netlify firebase heroku fly flyctl railway surge serverless sls cdk amplify eb",
        Subcommand,
        "-p,--pat,--project= -t,--token= -a,--app= --prod --stage= -c,--config= -e,--env= -y,--yes -f,--force",
    ),
    // Clouds and clusters.
    (
        "docker podman nerdctl",
        Subcommand,
        "-H,--host= -c,--context= --config= -l,--log-level= -D --tls -f= -q -a,--all --force -v,--volume= -e,--env= -p,--publish= -w,--workdir= -u,--user= --name= --network= --entrypoint= -t,--tty --tag= -i,--interactive -d,--detach --rm --privileged --mount= --env-file=r --platform= --build-arg= --volumes --filter= --format= --pid= --cap-add= --security-opt= --add-host= -h= --cpus= -m= --gpus= --label= --restart= --target=",
    ),
    (
        "docker-compose podman-compose",
        Subcommand,
        "-f,--file=r -p,--project-name= --profile= --env-file=r --project-directory= -d,--detach -T -v,--volumes -e= -u= -w= --rm --no-deps --build",
    ),
    (
        "kubectl oc k3s k9s",
        Subcommand,
        "-n,--namespace= --context= --kubeconfig=r --cluster= --user= -s,--server= --token= --as= -c,--container= -f,--filename=r -k,--kustomize= -o,--output= -l,--selector= -A,--all-namespaces --all -i,--stdin -t,--tty -w -p,--patch= --type= --replicas= --grace-period= --force --dry-run= --field-selector= --tail= --since= --image=",
    ),
    (
        "helm helmfile kustomize flux argocd istioctl",
        Subcommand,
        "-n,--namespace= --kube-context= --kubeconfig=r -f,--values=r --set= --set-string= --version= -o= --timeout= --repo=",
    ),
    (
        "terraform/tofu terragrunt pulumi cdktf packer",
        Subcommand,
        "-chdir= -var= -var-file=r -target= -out=w -state=r -auto-approve,--auto-approve -y,--yes -lock= -backend-config= -refresh= -destroy -parallelism= -s,--stack= -C,--cwd=",
    ),
    (
        "aws",
        Subcommand,
        "--profile= --region= --endpoint-url= --output= --query= --no-paginate --debug --recursive --force --delete --dryrun --exclude= --include= --acl= --bucket= --key= --function-name= --stack-name= --instance-ids= --name= --db-instance-identifier= --skip-final-snapshot --cli-input-json=",
    ),
    (
        "gcloud gsutil bq",
        Subcommand,
        "--project= --zone= --region= --account= --configuration= --format= --filter= -q,--quiet --command=t --impersonate-service-account= -m -r -R -n -d -f",
    ),
    (
        "az doctl linode-cli hcloud oci ibmcloud aliyun scw",
        Subcommand,
        "-g,--resource-group= -n,--name= --subscription= -o,--output= --query= -y,--yes --profile=",
    ),
    ("ansible ansible-playbook", Other, "-i= -m= -a=t -e= -l= -u= -b -K -k --become"),
    (
        "vault op pass bw doppler aws-vault sops age security keyring",
        Subcommand,
        "-field= -format= --vault= --account= -p= -c= -s= -a= -w -g --project= --config=",
    ),
    // Wrappers, whose flags come before the command that they run.
    (
        "sudo doas",
        Other,
        "-u,--user= -g,--group= -h,--host= -p,--prompt= -C= -D,--chdir= -R,--chroot= -T= -r= -t= -a= -U= -E,--preserve-env -H -n -S -k -K -b -i,--login -s,--shell -v -l -A -P -B",
    ),
    ("su runuser", Other, "-c,--command=t -s,--shell= -g= -G= -u= -l,--login -m -p -w= --session-command=t"),
    (
        "env/genv",
        Other,
        "-u,--unset= -C,--chdir= -S,--split-string=t -i,--ignore-environment -0 -v --block-signal= --default-signal= --ignore-signal= -P=",
    ),
    ("command builtin exec", Other, "-v -V -p -a= -c -l"),
    ("timeout/gtimeout", Other, "-s,--signal= -k,--kill-after= --preserve-status --foreground -v -f -p"),
    (
        "nice/gnice ionice renice chrt taskset",
        Other,
        "-n,--adjustment,--classdata= -c,--class,--cpu-list= -p= -t -f -r -b -o -a",
    ),
    ("stdbuf", Other, "-i,--input= -o,--output= -e,--error="),
    (
        "xargs/gxargs",
        Other,
        "-I= -i -L= -l -n,--max-args= -P,--max-procs= -s= -d,--delimiter= -E= -a,--arg-file=r -0,--null -r,--no-run-if-empty -t -p -x -J= -R= -S= -o",
    ),
    (
        "parallel",
        Other,
        "-j,--jobs= -a,--arg-file=r --colsep= -I= -N= -n= -L= --joblog=w --results=w -S,--sshlogin= --timeout= --delay= -k --bar --progress -0 -X -m -d= --halt=",
    ),
    (
        "nohup setsid time unbuffer caffeinate chronic eatmydata proxychains torsocks tsocks fakeroot dbus-run-session catchsegv",
        Other,
        "-w= -t= -f -o=w -a -p -v -q -c -l",
    ),
    (
        "strace ltrace valgrind gdb lldb perf dtruss",
        Other,
        "-e= -o=w -p= -s= -f -ff -c -t -tt -T -y -v -q -u= -x= -ex= -batch -iex= --args -S=",
    ),
    ("watch entr", Other, "-n,--interval= -d,--differences -t,--no-title -b -e -g -c -x,--exec -p -r -s -z"),
    ("flock", Other, "-c,--command=t -w,--timeout= -E= -n,--nonblock -s,--shared -x -e -u -o -F"),
    ("script", Writes, "-c,--command=t -a -e -f -q -t= -T=w -O=w -I=w -B=w -E= -m="),
    ("chroot", Other, "--userspec= --groups= --skip-chdir"),
    (
        "unshare nsenter bwrap firejail systemd-run systemd-nspawn",
        Other,
        "-t= -S= -G= -m -u -i -n -p -U -C -r -R= -w= -f --fork --mount-proc --map-root-user -D= --user --scope --unit= -E= -q --pty -a",
    ),
    (
        "npx bunx pnpx uvx",
        Other,
        "-p,--package= -c,--call=t -y,--yes -q,--quiet --no-install --from= --with= -w= --python=",
    ),
    ("nix-shell", Other, "--run=t --command=t -p,--packages -A= -E= -I= --pure"),
    ("tmux screen", Subcommand, "-S= -L= -f=r -d -m -s= -t= -n= -c= -A -D -R -X -dmS="),
    (
        "hyperfine concurrently nodemon watchexec cargo-watch",
        Other,
        "-w,--warmup,--watch= -r,--runs= -n,--names= -c= -p,--prepare=t -s,--setup=t -x,--exec=t -e= -i -k",
    ),
    (
        "vim/vi/nvim view ex ed emacs nano code subl",
        Writes,
        "-c= +c= --cmd= -S=r -u=r -e -E -s= -n -R --eval= -f --batch -Q -l=r",
    ),
    ("man info apropos whatis", Other, "-P,--pager=t -H,--html=t -M= -S="),
    (
        "echo printf true false : test [ pwd type which whereis whoami id date uname hostname sleep seq basename dirname yes tput clear return exit break continue shift wait jobs umask ulimit getopts hash times let",
        Other,
        "",
    ),
];
