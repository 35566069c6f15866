// Which files of a folder stay at home: the rules of its .gitignore files, and a list of patterns
// of the caller.
//
// Pure. Rules: gitignore(5), and git's own order: the deepest file, and in it the last rule that
// matches, decides; what lies in a folder that is left out cannot be taken back in. The caller's
// patterns are those of Gradient's --ignoreFiles: fnmatch against the path relative to the root, so
// that '*' crosses '/'; a pattern that names a folder means all that is in it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "workspace/glob.h"

namespace muster::workspace {

class IgnoreRules {
 public:
  /// `patterns`: of the caller. .git, .idea and .pytest_cache of the root are always left out.
  explicit IgnoreRules(std::vector<std::string> patterns = {});

  /// The .gitignore of `folder` ("" is the root, "src/lib").
  void add_file(std::string_view folder, std::string_view text);

  /// REQUIRES: the files of all folders above `path` were added, and none of these is left out.
  bool leaves_out(std::string_view path, bool is_folder) const;

 private:
  struct Rule {
    Glob glob;
    bool takes_back = false;
    bool folders_only = false;
    bool anchored = false;  ///< matches the path from the file's folder on, else the name alone
  };
  using Rules = std::vector<Rule>;

  static void add_line(std::string_view line, Rules& rules);

  std::vector<std::string> patterns_;
  std::map<std::string, Rules, std::less<>> rules_;  ///< by folder
};

/// "a, b,,c" -> {"a", "b", "c"}.
std::vector<std::string> split_patterns(std::string_view list);

}  // namespace muster::workspace
