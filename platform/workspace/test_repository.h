// A repository for tests, made by git itself, in an environment without the user's configuration.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/test_folder.h"
#include "workspace/git_source.h"

namespace muster::workspace {

class GitTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* const name : {"home", "tmp", "repository"}) {
      std::filesystem::create_directory(folder_ / name);
    }
    ::setenv("HOME", (folder_ / "home").c_str(), 1);
    ::setenv("TMPDIR", (folder_ / "tmp").c_str(), 1);
    ::setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
    ::unsetenv("XDG_CONFIG_HOME");
  }
  void TearDown() override {
    ::unsetenv("TMPDIR");
    ::unsetenv("GIT_CONFIG_NOSYSTEM");
  }

  std::filesystem::path repository() const { return folder_ / "repository"; }
  std::string url() const { return "file://" + repository().string(); }

  /// Runs git in the repository.
  void git(const std::vector<std::string>& arguments) const {
    base::SpawnOptions options{
        .argv = {"git", "-c", "user.name=ada", "-c", "user.email=a@b", "-c",
                 "init.defaultBranch=main", "-c", "protocol.file.allow=always"},
        .environment = git_environment(base::current_environment()),
        .folder = repository()};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    const auto child = base::spawn(options);
    ASSERT_TRUE(child) << child.error().to_string();
    EXPECT_EQ(*base::wait_for(*child), 0) << arguments.front();
  }
  void write(const std::string& name, std::string_view content) const {
    std::filesystem::create_directories((repository() / name).parent_path());
    ASSERT_TRUE(base::write_file(repository() / name, content));
  }
  /// Commits a file; returns the id of the commit, which HEAD points to.
  std::string commit(const std::string& name, std::string_view content) const {
    write(name, content);
    git({"add", "--force", "--all"});
    git({"commit", "--quiet", "--message=" + name});
    const std::string head = *base::read_file(repository() / ".git/refs/heads/main");
    return head.substr(0, head.find('\n'));
  }
  void make_repository() const { git({"init", "--quiet"}); }

  bool temporary_is_empty() const { return std::filesystem::is_empty(folder_ / "tmp"); }

  base::TestFolder folder_;
};

}  // namespace muster::workspace
