"""Commands that do more than they seem to: each tries to run `canary`, or to write a file."""

from itertools import product
from typing import Final

CODE: Final = "a[$(canary x)]"
"""Arithmetic evaluates a subscript, and with it the command in it."""

_COMPUTED: Final = """
echo $((CODE))
((CODE))
[[ CODE -eq 0 ]]
echo ${y:CODE}
echo ${y:0:CODE}
let CODE
y[CODE]=1
declare -i y=CODE
local -i y=CODE
typeset -i y; y=CODE
echo $[CODE]
for ((y=CODE;0;)); do a; done
test CODE -eq 0
[ CODE -eq 0 ]
test -t CODE
[ -v CODE ]
[[ -v CODE ]]
test -v CODE
test -R CODE
printf %d CODE
printf -v CODE y
printf %n CODE
printf %ln CODE
printf '%*d' CODE 1
printf '%(%s)T' CODE
read CODE <<< y
read -a y -n CODE
read -t CODE y
unset CODE
exit CODE
return CODE
shift CODE
break CODE
wait CODE
wait -p CODE
wait -n -p CODE a
kill -s CODE 1
ulimit -n CODE
umask CODE
mapfile -O CODE y
mapfile -C CODE -c 1 y <<< z
readarray -t CODE
export CODE=1
readonly CODE=1
declare CODE=1
declare -n y=CODE
declare -g CODE=1
local CODE=1
getopts a CODE
caller CODE
dirs +CODE
pushd +CODE
history CODE
x=CODE; echo ${x}
x=CODE; echo ${!x}
x=CODE; echo ${x@P}
x=CODE; echo $((x))
x=CODE; echo ${y:x}
echo ${y[CODE]}
echo ${#y[CODE]}
exec {x}>f; a CODE
echo ${y:=CODE} $((y))
hash -p CODE y
trap CODE EXIT
exec {y[CODE]}>f; a
a {y[CODE]}>f
coproc y[CODE] { a; }
for y[CODE] in a; do a; done
select y[CODE] in a; do break; done <<< 1
case a in CODE) a;; esac
case $((CODE)) in *) a;; esac
[[ a == CODE ]]
[[ 1 -lt CODE ]]
y=(CODE); echo ${y[0]@P}
y=([CODE]=1)
declare y[CODE]=1
typeset y[CODE]
unset -v y[CODE]
unset y[CODE]
wait -f -p y[CODE]
read y[CODE] <<< z
read -e -i CODE y
read -N CODE y
mapfile -n 1 -s CODE y
printf -v y[CODE] z
getopts a y[CODE] -a
y=1 let ++y[CODE]
export y[CODE]
hash -t CODE
test a -ot CODE
sleep $((CODE))
kill -CODE 1
ulimit CODE
"""
"""One command on each line: places in which some shell computes, or assigns to a name."""
_QUOTED: Final = (
    f"'{CODE}'",
    "$'a[\\x24(canary x)]'",
    "$'a[\\44(canary x)]'",
    "$'a[\\u0024(canary x)]'",
    '"a[\\$(canary x)]"',
    "a[\\$\\(canary\\ x\\)]",
    "'a[`canary`]'",
)

_PLACES: Final = r"""
{}
'{}'
"{}"
\\{}
$'{}'
$"{}"
{}''
''{}
./{}
$(echo {})
`echo {}`
${z:-{}}
{{},}
env {}
env -S '{} x'
env -iS '{} x'
env A=1 {}
command {}
command -p {}
builtin {}
exec {}
exec -a a {}
time {}
time -p -- {}
time A=1 {}
! {}
coproc {}
nice {}
nice -n5 {}
nohup {}
timeout 5 {}
timeout -s KILL 5 {}
setsid {}
stdbuf -oL {}
xargs {}
echo x | xargs {}
find . -exec {} ;
find . -exec {} \\;
find . -exec {} +
eval {}
bash -c {}
sh -c '{} x'
bash -c -- {}
bash -ec '{}'
sh -s {}
bash <<< {}
PATH=. {}
PATH=.:$PATH {}
LD_PRELOAD=x {}
GIT_PAGER={} a
PAGER={} a
IFS=n {}
A=1 {}
A+=1 {}
BASH_ENV={} bash -c a
ENV={} sh
CI=1 {}
CI=$({}) a
A=(x $({})) a
TERM=x {} x
a | {}
a |& {}
a & {}
a && {}
a || {}
a; {}
a\n{}
a\r\n{}
a;{}
a\t;\t{}
if {}; then a; fi
while {}; do break; done
until {}; do break; done
{ {}; }
({})
a $({} x)
a $(b $(echo {}))
a "$(b "$({} x)")"
a `b \\`{} x\\``
a ${x:-${y:-$({})}}
a $((1 + $({})))
a <(b <({}))
for x in {}; do $x; done
for x in a; do {}; done
select x in a; do {}; break; done <<< 1
f() { {}; }; f
function f { {}; }; f
case a in a) {};; esac
case a in a) a;& b) {};; esac
cat <<E\n$({})\nE\n
cat <<E; {}\nE\n
cat <<'E'\nx\nE\n{}
cat <<-E\n\t`{}`\n\tE\n
cat <<E\\\nF\nE\n{}\nEF\n
cat <<"E" | {}\nx\nE\n
a <<< $({})
a <({})
a >({})
alias a={}\na
shopt -s expand_aliases\nalias a={}\na
set -- {}; $1
set -k; a PATH=. {}
trap {} EXIT
echo a # b\n{}
echo a#; {}
echo a \\#; {}
echo \\ #; {}
a &# b\n{}
a && # b\n{}
a\\\n;{}
a \\\n; {}
\\\n{}
a\u00a0; {}
a\u2003{}
a\v{}
a\f; {}
\ufeff{}
enable -f ./x {}
complete -C {} a
compgen -C {}
bind -x {}
fc -s {}
hash -p {} b\nb
type {}; {}=1
mapfile -C {} -c 1 y <<< z
mapfile -c1 -C{} <<< z
readarray -C '{} x' -c 1 y <<< z
trap -- {} ERR; false
trap {} DEBUG; a
trap {} RETURN
trap {} 0
trap {} USR1; kill -USR1 $BASHPID
PROMPT_COMMAND={} bash -ic a
BASH_ENV={} bash a
ENV={} bash --posix -ic a
PS0='$({})' bash -ic a
PS1='$({})' bash -ic a
PS4='$({})' bash -xc a
SHELLOPTS=xtrace PS4='$({})' bash -c a
BASHOPTS=expand_aliases bash -c {}
bash --rcfile {} -ic a
bash --init-file {} -i
bash -O expand_aliases -c {}
sh -c "$1" a {}
coproc y {}
coproc y { {}; }; wait
echo \a | while read y; do {}; done
exec {y}> >({}); a
a {y}<> f {y}>&1; {}
a {y}< <({})
case a in $({})) a;; esac
case $({}) in *) a;; esac
case a in a) ;; esac; {}
case a in (a) {} ;; esac
[[ a = $({}) ]]
[[ -n a ]] && {}
((1)) && {}
echo $"a" $({})
echo $"`{}`"
eval -- {}
eval 'a;' {}
alias -p; {}
unalias -a; {}
echo() { {}; }; echo a
cd() { {}; }; cd .
command_not_found_handle() { {}; }; z
set -- a {}; "$2"
set -- {}; "$@"
set -- {}; $*
y={}; $y
y={} ; "$y" x
y=({} x); "${y[@]}"
y={}; ${y^}; ${y}
IFS=,; y={},x; $y
set -f; {}
set -o posix; {}
set +o history; {}
set -o history -o histexpand\n{}\n!!
source {}
. ./{}
. /dev/stdin <<< {}
source <(echo {})
bash <(echo {})
bash < <(echo {})
bash /dev/stdin <<< {}
enable -n echo; echo() { {}; }
enable -f ./f {}
builtin eval {}
builtin command {}
command eval {}
command builtin eval {}
command . {}
exec -c {}
exec -l {}
exec -cl -a y {}
{ a; } ; {}
{\n{}\n}
(a) ; {}
! ! {}
! time {}
time ! {}
time -- {}
if a\nthen {}\nfi
for x; do {}; done
for ((;;)) { {}; break; }
until a; do a; done; {}
a \\\r\n{}
a\r{}
a \r\n {}
{}\r
a\x00{}
\x00{}
a\u1680{}
a\u2028{}
a\u3000; {}
a\u0085; {}
a\u200b; {}
a\x1c{}
a ~+/../{} {}
a {1..2}; {}
{,{}}
{{},{}} x
~/{}
~+/{}
$'\\x63anary'
$'\\143anary'
$'\\u0063anary'
$'c\\0'anary; {}
{} > f
{} >| f
{} >> f
{} &> f
{} &>> f
{} >& f
{} <> f
> f {}
2> f {}
a > f > x; {} >> 'g h'
{} 1>f 2>&1 <f
nohup nice -n 5 timeout 5 {} x
bash a {}
sh -e b {} x
command -v {}; command -V {}
"""
"""One command on each line, with the escapes of Python: places for the name of a program."""

_OTHERS: Final = (
    "echo a =~\ncanary x",
    "echo a\\\n#; canary x",
    "cat <<E\n$(canary x)$x\nE\n",
    "echo $'\\x24(canary x)'; echo ${_@P}",
    "echo ${x=$'a[\\x24(canary x)]'} $((x))",
    "x='y[$(canary x)]'; echo ${!x}",
    "echo {can,}ary; {canary,x}",
    "PS4='$(canary x)'; set -x; a",
    "PROMPT_COMMAND=canary bash -i",
    f"echo {'a' * 70_000}; canary x",
    f"{'a=1 ' * 5_000} canary x",
    f"echo {'(' * 200}{')' * 200}; canary x",
    f"echo {'$(' * 60}canary{')' * 60}",
    f"echo '{'b' * 9_000}'\"'\"'; canary x; '",
    "cat <<E <<F\n$(canary x)\nE\n`canary y`\nF\n",
    "cat <<$(canary x)\na\n$(canary x)\n",
    "cat <<E |\n$(canary x)\nE\na",
    "cat <<E;cat <<'F'\n`canary x`\nE\n$(b)\nF\n",
    "cat <<'E\nF'\na\nE\nF\ncanary x",
    "cat <<E\n\\$(canary x)\\\\$(canary y)\nE\n",
    "cat <<E\nE \nE\ncanary x",
    "cat <<\\E\n$(a)\nE\ncanary x",
    "cat <<''\na\n\ncanary x",
    "can\\\nary x",
    "canary\\\n x",
    "!can",
    "!!:s/a/canary/",
    "echo '\\'; canary x; echo '",
    'echo "\\\\"; canary x; "y"',
    'echo "\\"; canary x; "y"',
    "a # '\ncanary x #'",
    "a \\\n  # x\ncanary x",
)


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


GROUPS: Final = (
    _OTHERS,
    tuple(
        line.encode().decode("unicode_escape").replace("{}", "canary") for line in _lines(_PLACES)
    ),
    tuple(line.replace("CODE", quoted) for line, quoted in product(_lines(_COMPUTED), _QUOTED)),
)
HOSTILE: Final = tuple(command for group in GROUPS for command in group)
