// Compares the ignore rules with git itself, on hundreds of trees and rules.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/test_folder.h"
#include "base/text.h"
#include "workspace/path_text.h"
#include "workspace/scan.h"

namespace muster::workspace {

namespace fs = std::filesystem;

namespace {

using Paths = std::set<std::string>;

/// A generator of numbers that are the same in every run.
class Dice {
 public:
  explicit Dice(uint32_t seed) : generator_(seed) {}

  size_t below(size_t count) { return generator_() % count; }
  bool once_in(size_t count) { return below(count) == 0; }
  template <class Things>
  const auto& one_of(const Things& things) {
    return things[below(things.size())];
  }

 private:
  std::mt19937 generator_;
};

constexpr std::array<std::string_view, 18> kNames{
    "a",   "b",  "ab",  "abc", "foo", "foo.o", "bar",      "build", "x y",
    "b  ", "[a", "#no", "!no", "c\\", "*",     "\xc3\xa9", ".hid",  "A-1"};

/// Parts of .gitignore lines, including invalid and unusual ones.
constexpr std::array<std::string_view, 40> kPieces{
    "a",      "b",     "c",    "ab",  "foo",         "bar",          "build",    ".o",     " ",
    "o",      "x",     "*",    "*",   "*",           "**",           "**",       "***",    "?",
    "/",      "/",     "/",    "/**", "**/",         "/**/",         "/*",       "[ab]",   "[!a]",
    "[^b-f]", "[a-c]", "[]a]", "[[]", "[[:alpha:]]", "[[:digit:]-]", "[[:no:]]", "[\\]a]", "[-a]",
    "\\*",    "\\ ",   "\\\\", "[a"};

std::string random_rule(Dice& dice) {
  std::string rule;
  if (dice.once_in(4)) rule += "!";
  if (dice.once_in(30)) rule += "#";
  if (dice.once_in(30)) rule += "\\";
  if (dice.once_in(4)) rule += "/";
  if (dice.once_in(3)) {
    rule += dice.one_of(kNames);
  } else {
    for (size_t count = 1 + dice.below(5); count > 0; --count) rule += dice.one_of(kPieces);
  }
  if (dice.once_in(4)) rule += "/";
  if (dice.once_in(8)) rule += "  ";
  if (dice.once_in(20)) rule += "\t";
  return rule;
}

std::string random_rules(Dice& dice) {
  std::string text = dice.once_in(10) ? "\xef\xbb\xbf" : "";
  const std::string end = dice.once_in(5) ? "\r\n" : "\n";
  for (size_t count = 1 + dice.below(6); count > 0; --count) text += random_rule(dice) + end;
  return dice.once_in(5) ? text + random_rule(dice) : text;
}

/// The present content of a folder.
struct Grown {
  std::vector<fs::path> rule_files;
  size_t files = 0;
};

void grow(Dice& dice, const fs::path& folder, size_t depth, Grown& grown) {
  fs::create_directories(folder);
  for (size_t count = 2 + dice.below(4); count > 0; --count) {
    const fs::path path = folder / dice.one_of(kNames);
    if (fs::exists(fs::symlink_status(path))) continue;
    if (depth < 3 && dice.once_in(2)) {
      grow(dice, path, depth + 1, grown);
      continue;
    }
    ++grown.files;
    if (dice.once_in(12)) {
      fs::create_symlink("a", path);
    } else {
      ASSERT_TRUE(base::write_new_file(path, ""));
    }
  }
  if (depth == 0 || dice.once_in(4)) {
    ++grown.files;
    grown.rule_files.push_back(folder / ".gitignore");
  }
}

class GitsJudgement : public testing::Test {
 protected:
  GitsJudgement() { git({"init", "--quiet"}); }

  /// The standard output of git. The machine's configuration is ignored.
  std::string git(std::vector<std::string> words) {
    words.insert(words.begin(), "git");
    const fs::path output = work_ / "output";
    const base::UniqueFd file(::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
    fs::create_directories(tree_);
    const auto child =
        base::spawn({.argv = std::move(words),
                     .environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM=1",
                                     "HOME=" + work_.path().string()},
                     .descriptors = {{file.get(), 1}},
                     .folder = tree_});
    EXPECT_TRUE(child);
    EXPECT_EQ(*base::wait_for(*child), 0);
    return *base::read_file(output);
  }

  Paths kept_by_git() {
    const auto list = base::split(git({"ls-files", "-z", "--others", "--exclude-standard"}), '\0');
    return {list.begin(), list.end()};
  }

  Paths kept_by_us() const {
    const auto scan = scan_folder(tree_, {});
    EXPECT_TRUE(scan) << scan.error().to_string();
    Paths paths;
    if (!scan) return paths;
    for (const ManifestEntry& entry : scan->manifest.entries) {
      if (entry.kind != ManifestEntry::Kind::kFolder) paths.insert(entry.path);
    }
    return paths;
  }

  /// The differences between both, with all rules of the trees concerned.
  std::string difference(const Paths& git, const Paths& us) const {
    std::string text;
    Paths trees;
    const auto add = [&](const Paths& these, const Paths& those, const std::string& what) {
      for (const std::string& path : these) {
        if (those.contains(path)) continue;
        text += what + shown(path) + "\n";
        trees.insert(path.substr(0, path.find('/')));
      }
    };
    add(git, us, "git keeps ");
    add(us, git, "git leaves out ");
    for (const std::string& tree : trees) {
      for (const auto& item : fs::recursive_directory_iterator(tree_ / tree)) {
        if (item.path().filename() != ".gitignore") continue;
        text += shown(item.path().lexically_relative(tree_).native()) + " has " +
                shown(*base::read_file(item.path())) + "\n";
      }
    }
    return text;
  }

  const base::TestFolder work_;
  const fs::path tree_ = work_ / "tree";
};

TEST_F(GitsJudgement, GitAgreesOnHundredsOfTreesAndRules) {
  constexpr size_t kRounds = 12;
  constexpr size_t kTrees = 40;  // next to each other, because git is slow to start
  Dice dice(1);
  Grown grown;
  for (size_t tree = 0; tree < kTrees; ++tree) {
    grow(dice, tree_ / std::to_string(tree), 0, grown);
    if (HasFatalFailure()) return;
  }
  size_t left_out = 0;
  for (size_t round = 0; round < kRounds; ++round) {
    for (const fs::path& file : grown.rule_files) {
      std::ofstream(file, std::ios::trunc) << random_rules(dice);
    }

    const Paths git = kept_by_git();
    const Paths us = kept_by_us();

    ASSERT_EQ(git, us) << difference(git, us);
    left_out += grown.files - us.size();
  }
  EXPECT_GT(left_out, kRounds * kTrees) << "the rules leave hardly anything out";
}

}  // namespace
}  // namespace muster::workspace
