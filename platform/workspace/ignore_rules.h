// Which files of a folder are left out of a workspace: the rules of its .gitignore files, and a
// list of patterns from the caller.
//
// Pure. The rules are those of gitignore(5), in git's order: the deepest .gitignore decides, and in
// it the last rule that matches. A file in an excluded folder cannot be included again. The
// caller's patterns follow Gradient's --ignoreFiles: fnmatch against the path relative to the root,
// so '*' matches '/' too, and a pattern that names a folder means everything in it.
#pragma once

#include <bitset>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster::workspace {

/// The wildcards of one .gitignore line, with git's meaning: '*' and '?' do not match '/', "**"
/// between slashes does, [a-z], [!a-z], [[:digit:]], and '\' before a literal character.
///
/// The time is proportional to pattern length times path length for every pattern, so a hostile
/// repository cannot slow the scan down.
class Glob {
 public:
  explicit Glob(std::string_view pattern);

  bool matches(std::string_view path) const;

 private:
  struct Step {
    enum class Kind {
      kOneOf,        ///< one byte of `bytes`
      kWithinName,   ///< "*": any run of bytes without a '/'
      kAcross,       ///< "**" at the end: any run of bytes
      kWholeFolders  ///< "**/": nothing, or any run of bytes that ends with a '/'
    };
    Kind kind = Kind::kOneOf;
    std::bitset<256> bytes;
  };

  size_t read_stars(std::string_view pattern, size_t at);
  size_t read_set(std::string_view pattern, size_t at);
  bool ends_right(std::string_view path) const;
  void enter(std::vector<bool>& places, size_t step) const;

  std::string literal_;  ///< the text before the first wildcard
  std::vector<Step> steps_;
  size_t tail_ = 0;     ///< number of steps at the end that match one byte each
  bool never_ = false;  ///< malformed: a '[' without ']', or a '\' at the end
};

class IgnoreRules {
 public:
  /// `patterns`: the caller's. The root's .git, .idea and .pytest_cache are always left out.
  explicit IgnoreRules(std::vector<std::string> patterns = {});

  /// Adds the .gitignore of `folder` ("" is the root; else such as "src/lib").
  void add_file(std::string_view folder, std::string_view text);

  /// REQUIRES: the .gitignore files of all folders above `path` were added, and none of these
  /// folders is left out.
  bool leaves_out(std::string_view path, bool is_folder) const;

 private:
  struct Rule {
    Glob glob;
    bool takes_back = false;    ///< the line starts with '!'
    bool folders_only = false;  ///< the line ends with '/'
    bool anchored = false;      ///< matches the path below the file's folder, else the name only
  };
  using Rules = std::vector<Rule>;

  static void add_line(std::string_view line, Rules& rules);

  std::vector<std::string> patterns_;
  std::map<std::string, Rules, std::less<>> rules_;  ///< by folder
};

/// "a, b,,c" -> {"a", "b", "c"}.
std::vector<std::string> split_patterns(std::string_view list);

}  // namespace muster::workspace
