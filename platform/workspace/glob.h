// The wildcards of a .gitignore line, as git matches them: '*' and '?' stop at '/', "**" between
// slashes crosses them, [a-z], [!a-z], [[:digit:]], and '\' before what is meant literally.
//
// Takes time in proportion to pattern times path, whatever the pattern: one of a stranger's
// repository cannot make it slow. Pure; a value.
#pragma once

#include <bitset>
#include <string>
#include <string_view>
#include <vector>

namespace muster::workspace {

class Glob {
 public:
  explicit Glob(std::string_view pattern);

  bool matches(std::string_view path) const;

 private:
  struct Step {
    enum class Kind {
      kOneOf,        ///< one byte of `bytes`
      kWithinName,   ///< "*": any run without a '/'
      kAcross,       ///< "**" at the end: any run
      kWholeFolders  ///< "**/": nothing, or any run that ends in a '/'
    };
    Kind kind = Kind::kOneOf;
    std::bitset<256> bytes;
  };

  size_t read_stars(std::string_view pattern, size_t at);
  size_t read_set(std::string_view pattern, size_t at);
  bool ends_right(std::string_view path) const;
  void enter(std::vector<bool>& places, size_t step) const;

  std::string literal_;  ///< what stands before the first wildcard
  std::vector<Step> steps_;
  size_t tail_ = 0;     ///< how many steps at the end take one byte each
  bool never_ = false;  ///< a '[' without its ']', a '\' before nothing
};

}  // namespace muster::workspace
