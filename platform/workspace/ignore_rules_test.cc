#include "workspace/ignore_rules.h"

#include <gtest/gtest.h>

namespace muster::workspace {
namespace {

struct Case {
  std::string rules;
  std::string path;
  bool left_out;
};

/// Paths that end with '/' are folders.
bool leaves_out(const IgnoreRules& rules, std::string path) {
  const bool is_folder = path.ends_with('/');
  if (is_folder) path.pop_back();
  return rules.leaves_out(path, is_folder);
}

TEST(IgnoreRules, AreThoseOfGitignore) {
  const std::vector<Case> cases{
      // A name without a slash matches anywhere; a slash anchors it to the folder of the file.
      {"*.pyc", "a/b/c.pyc", true},
      {"*.pyc", "c.py", false},
      {"/build", "build/", true},
      {"/build", "src/build/", false},
      {"src/build", "src/build", true},
      {"src/build", "a/src/build", false},
      {"build/", "build", false},
      {"build/", "a/build/", true},
      // The last matching rule decides.
      {"*.log\n!keep.log", "keep.log", false},
      {"!keep.log\n*.log", "keep.log", true},
      // Two stars match slashes, one star does not.
      {"a/*", "a/b/c", false},
      {"a/**", "a/b/c", true},
      {"a/**/c", "a/c", true},
      {"a/**/c", "a/b/b/c", true},
      {"**/c", "c", true},
      {"/a*c", "ab/c", false},
      {"?", "a", true},
      {"a?c/x", "a/c/x", false},
      // Sets.
      {"[a-c]x", "bx", true},
      {"[!a-c]x", "bx", false},
      {"[^a-c]x", "dx", true},
      {"[]]x", "]x", true},
      {"[[:digit:]]x", "7x", true},
      {"[[:nothing:]]x", "7x", false},
      {"[\\]a]", "]", true},
      {"a[/]b", "a/b", false},
      {"[ab", "[ab", false},
      // Special characters without their special meaning.
      {"# not", "# not", false},
      {"\\#yes", "#yes", true},
      {"\\!yes", "!yes", true},
      {"\\*", "*", true},
      {"\\*", "a", false},
      {"a\\", "a\\", false},
      {"blank  ", "blank", true},
      {"blank\\ ", "blank ", true},
      {"blank\\\\  ", "blank\\", true},
      {" ", " ", false},
      {"crlf\r\n", "crlf", true},
      {"\xef\xbb\xbfmark", "mark", true},
      {"two\nlines", "lines", true},
      {"!", "!", false},
      {"/", "a/", false},
  };
  for (const Case& one : cases) {
    IgnoreRules rules;
    rules.add_file("", one.rules);
    EXPECT_EQ(leaves_out(rules, one.path), one.left_out) << one.rules << " on " << one.path;
  }
}

TEST(IgnoreRules, OfADeeperFolderTakePrecedenceAndApplyOnlyThere) {
  IgnoreRules rules;
  rules.add_file("", "*.csv\n/top");
  rules.add_file("data", "!small.csv\n/top");

  EXPECT_TRUE(leaves_out(rules, "small.csv"));
  EXPECT_FALSE(leaves_out(rules, "data/small.csv"));
  EXPECT_FALSE(leaves_out(rules, "data/deep/small.csv"));
  EXPECT_TRUE(leaves_out(rules, "data/large.csv"));
  EXPECT_TRUE(leaves_out(rules, "data/top"));
  EXPECT_FALSE(leaves_out(rules, "data2/top"));
  EXPECT_TRUE(leaves_out(rules, "data2/small.csv"));
}

TEST(IgnoreRules, MatchHostilePatternsQuickly) {
  IgnoreRules rules;
  std::string pattern;
  for (int i = 0; i < 1000; ++i) pattern += "**/a*";
  rules.add_file("", pattern + "b");

  // Trying each star at each place would practically never end.
  EXPECT_FALSE(leaves_out(rules, std::string(3000, 'a') + "/" + std::string(400, 'a') + "c"));
  EXPECT_FALSE(leaves_out(rules, std::string(3000, 'a') + "/" + std::string(400, 'a') + "b"));
}

TEST(IgnoreRules, OfTheCallerMatchSlashesAndWholeFolders) {
  const IgnoreRules rules({"*.tmp", "data/", "./runs", "a/*/c", "venv"});

  EXPECT_TRUE(leaves_out(rules, "deep/down/x.tmp"));
  EXPECT_TRUE(leaves_out(rules, "data/"));
  EXPECT_FALSE(leaves_out(rules, "data"));
  EXPECT_TRUE(leaves_out(rules, "runs"));
  EXPECT_TRUE(leaves_out(rules, "runs/"));
  EXPECT_TRUE(leaves_out(rules, "a/b/b/c"));
  EXPECT_TRUE(leaves_out(rules, "venv/"));
  EXPECT_FALSE(leaves_out(rules, "src/venv/"));
}

TEST(IgnoreRules, OfTheCallerAreNotOverriddenByAFile) {
  IgnoreRules rules({"secret"});
  rules.add_file("", "!secret");

  EXPECT_TRUE(leaves_out(rules, "secret"));
}

TEST(IgnoreRules, AlwaysExcludeFoldersOfToolsAtTheRoot) {
  const IgnoreRules rules;

  EXPECT_TRUE(leaves_out(rules, ".git/"));
  EXPECT_TRUE(leaves_out(rules, ".git"));
  EXPECT_TRUE(leaves_out(rules, ".idea/"));
  EXPECT_TRUE(leaves_out(rules, ".pytest_cache/"));
  EXPECT_FALSE(leaves_out(rules, "deep/.idea/"));
  EXPECT_FALSE(leaves_out(rules, ".github/"));
}

TEST(IgnoreRules, AreSplitAtCommasWithoutBlanks) {
  EXPECT_EQ(split_patterns("a, b,,c d ,\t"), (std::vector<std::string>{"a", "b", "c d"}));
  EXPECT_TRUE(split_patterns("").empty());
}

}  // namespace
}  // namespace muster::workspace
