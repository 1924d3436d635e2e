// What runs in the container: a bundle on stdout, one fact a line on descriptor 3 ("changed", "uncommitted",
// "note TEXT", "error TEXT"). Its answers are as little trusted as the repository.
#pragma once

namespace firestop::guest {

// Environment: BASE is the commit that the sandbox started from. The working directory is the repository.
inline constexpr char kExportScript[] = R"sh(
say() { printf '%s\n' "$*" >&3; }
die() { say "error $*"; exit 0; }
umask 077
[ -e .git ] || die "its .git is gone"
export GIT_DIR="$PWD/.git" GIT_WORK_TREE="$PWD"
git rev-parse --git-dir >/dev/null 2>&1 || die "its .git is no repository any more: $(git rev-parse --git-dir 2>&1 | tail -n 1)"
work=$(mktemp -d) || work=$(mktemp -d -p "$GIT_DIR") || die "no room for a temporary file"
export TIP
TIP=$(git rev-parse --verify --quiet 'HEAD^{commit}') || TIP=
has_base=; git cat-file -e "$BASE^{commit}" 2>/dev/null && has_base=1
if [ -z "$TIP" ]; then
  # A branch without commits, or a HEAD that names nothing: what lies there goes on top of the base.
  [ -n "$has_base" ] || die "HEAD names no commit, and the commit that the sandbox started from is gone"
  say "note HEAD stood on no commit"
  TIP=$BASE
fi

# An index of our own: the agent's may be locked, broken, or half-way through a merge.
export GIT_INDEX_FILE="$work/index"
cp "$GIT_DIR/index" "$GIT_INDEX_FILE" 2>/dev/null && git ls-files --stage >/dev/null 2>&1 ||
  { rm -f "$GIT_INDEX_FILE"; git read-tree "$TIP" || die "cannot read its last commit"; }
git add --all --ignore-errors . 2>"$work/said" ||
  say "note not all files could be added: $(head -c 300 "$work/said" | tr '\n' ' ')"
grep -q 'embedded git repository' "$work/said" && say "note repositories inside it are brought back as links only"

# Absolute symbolic links would be refused with all the rest: new ones stay behind.
find . -name .git -prune -o -type l -lname '/*' -print0 | xargs -0 -r -n 64 sh -c '
  for path; do
    path=${path#./}
    [ -n "$(git --literal-pathspecs ls-tree "$TIP" -- "$path")" ] || printf "%s\0" "$path"
  done' sh > "$work/links"
if [ -s "$work/links" ]; then
  git update-index -z --force-remove --stdin < "$work/links"
  say "note $(tr -cd '\0' < "$work/links" | wc -c) symbolic link(s) with absolute targets are not brought back"
fi

tree=$(git write-tree 2>"$work/said") || die "cannot write its tree: $(head -c 300 "$work/said" | tr '\n' ' ')"
if [ "$tree" != "$(git rev-parse "$TIP^{tree}")" ]; then
  TIP=$(git commit-tree "$tree" -p "$TIP" -m 'Uncommitted work of the sandbox') || die "cannot commit what was left"
  say uncommitted
fi
rm -rf "$work"

others=$(git for-each-ref --no-merged="$TIP" --format='%(refname:short)' refs/heads refs/stash | head -n 10 | tr '\n' ' ')
[ -z "$others" ] || say "note branches with commits that are not brought back: $others"
[ "$TIP" != "$BASE" ] || exit 0
if [ -n "$has_base" ] && git merge-base --is-ancestor "$TIP" "$BASE"; then
  say "note HEAD was moved back to an older commit"
  exit 0
fi
say changed
if [ ${#TIP} = 64 ]; then printf '# v3 git bundle\n@object-format=sha256\n'; else printf '# v2 git bundle\n'; fi
printf -- '-%s\n%s HEAD\n\n' "$BASE" "$TIP"
# Not thin: the host takes only packs that stand alone.
{ echo "$TIP"; [ -z "$has_base" ] || echo "^$BASE"; } |
  git pack-objects --revs --stdout -q --delta-base-offset --threads=1
)sh";

}  // namespace firestop::guest
