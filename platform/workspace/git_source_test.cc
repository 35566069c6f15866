// With the real git, over files and over HTTP on the loopback.
#include "workspace/git_source.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "workspace/test_repository.h"
#include "workspace/test_web_server.h"

namespace muster::workspace {
namespace {

using base::ErrorCode;

constexpr std::string_view kPassword = "s3cr%t-hunter2";
constexpr std::string_view kAuthorization = "Basic YWRhOnMzY3IldC1odW50ZXIy";  // ada:s3cr%t-hunter2

std::string content_of(const std::filesystem::path& file) {
  auto content = base::read_file(file);
  return content ? *content : "(" + content.error().what + ")";
}

class GitSource : public GitTest {
 protected:
  Result<Fetched> fetch(const std::string& ref = {}) {
    return fetch_repository({.where = url(), .ref = ref}, {});
  }

  /// The files that a web server needs to publish the repository.
  void publish() { git({"update-server-info"}); }
  TestWebServer::Options behind_password() const {
    return {.folder = repository(), .authorization = std::string(kAuthorization)};
  }
};

TEST_F(GitSource, FetchesTheDefaultBranchWithoutItsHistory) {
  make_repository();
  commit("old.txt", "old");
  git({"rm", "--quiet", "old.txt"});
  const std::string last = commit("src/train.py", "print()");

  const auto fetched = fetch();

  ASSERT_TRUE(fetched) << fetched.error().to_string();
  EXPECT_EQ(fetched->commit, last);
  EXPECT_EQ(content_of(fetched->folder / "src/train.py"), "print()");
  EXPECT_FALSE(std::filesystem::exists(fetched->folder / "old.txt"));
  EXPECT_FALSE(std::filesystem::exists(fetched->folder / ".git"));
  EXPECT_EQ(fetched->note, "");
}

TEST_F(GitSource, FindsABranchATagAndACommit) {
  make_repository();
  const std::string first = commit("a", "1");
  git({"tag", "--annotate", "--message=x", "v1"});
  const std::string second = commit("a", "2");
  git({"branch", "feature/x"});
  commit("a", "3");

  for (const auto& [ref, content] :
       std::vector<std::pair<std::string, std::string>>{{"", "3"},
                                                        {"main", "3"},
                                                        {"feature/x", "2"},
                                                        {"refs/heads/feature/x", "2"},
                                                        {"v1", "1"},
                                                        {first, "1"},
                                                        {second, "2"},
                                                        {first.substr(0, 8), "1"}}) {
    const auto fetched = fetch(ref);
    ASSERT_TRUE(fetched) << ref << ": " << fetched.error().to_string();
    EXPECT_EQ(content_of(fetched->folder / "a"), content) << ref;
  }
}

TEST_F(GitSource, ReportsAMissingRefAndLeavesNothingBehind) {
  make_repository();
  EXPECT_EQ(fetch().error().code, ErrorCode::kNotFound) << "no commit yet";
  commit("a", "1");

  for (const std::string ref :
       {"nobranch", "deadbeef", "0123456789012345678901234567890123456789"}) {
    const auto fetched = fetch(ref);
    ASSERT_FALSE(fetched) << ref;
    EXPECT_EQ(fetched.error().code, ErrorCode::kNotFound) << fetched.error().to_string();
    EXPECT_NE(fetched.error().what.find(ref), std::string::npos) << fetched.error().what;
  }
  const auto nowhere = fetch_repository({.where = url() + "-not"}, {});
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, ErrorCode::kNotFound) << nowhere.error().to_string();
  EXPECT_TRUE(temporary_is_empty());
}

TEST_F(GitSource, TheFolderIsPrivateAndRemovedWithTheFetched) {
  make_repository();
  commit("a", "1");
  {
    const auto fetched = fetch();
    ASSERT_TRUE(fetched);
    struct stat status{};
    ASSERT_EQ(::stat(fetched->own.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700U);
  }
  EXPECT_TRUE(temporary_is_empty());
}

TEST_F(GitSource, OmitsSubmodulesWithANote) {
  make_repository();
  commit("a", "1");
  git({"submodule", "--quiet", "add", url(), "sub"});
  commit("b", "2");

  const auto fetched = fetch();

  ASSERT_TRUE(fetched) << fetched.error().to_string();
  EXPECT_NE(fetched->note.find("submodules"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(fetched->folder / "sub"));
}

TEST_F(GitSource, ReportsProgress) {
  make_repository();
  commit("a", "1");
  std::string progress;

  ASSERT_TRUE(fetch_repository(
      {.where = url()}, [&](std::string_view line) { progress += std::string(line) + "\n"; }));

  EXPECT_NE(progress.find("100%"), std::string::npos) << progress;
}

// --- passwords

TEST_F(GitSource, ARepositoryWithAPasswordIsRefusedAtOnceWithoutAPrompt) {
  make_repository();
  commit("a", "1");
  publish();
  const TestWebServer server(behind_password());

  const auto fetched = fetch_repository(
      {.where = server.url("/.git"), .flags = {.username = "--user", .password = "--secret"}}, {});

  ASSERT_FALSE(fetched);
  EXPECT_EQ(fetched.error().code, ErrorCode::kRefused) << fetched.error().to_string();
  EXPECT_EQ(fetched.error().what,
            "the repository '" + server.url("/.git") + "' requires a password, or does not exist");
  EXPECT_EQ(fetched.error().advice,
            "if it is private, give --user and --secret (or a token); if not, check its name");
  EXPECT_TRUE(temporary_is_empty());
}

TEST_F(GitSource, TheGivenPasswordIsUsedAndNotStored) {
  make_repository();
  const std::string last = commit("a", "1");
  publish();
  const TestWebServer server(behind_password());
  ASSERT_TRUE(base::write_file(folder_ / "home/.gitconfig", "[credential]\n\thelper = store\n"));

  const auto fetched = fetch_repository(
      {.where = server.url("/.git"), .username = "ada", .password = std::string(kPassword)}, {});

  ASSERT_TRUE(fetched) << fetched.error().to_string();
  EXPECT_EQ(fetched->commit, last);
  EXPECT_EQ(content_of(fetched->folder / "a"), "1");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "home/.git-credentials"));
}

TEST_F(GitSource, ThePasswordOfTheUsersHelperIsUsed) {
  make_repository();
  commit("a", "1");
  publish();
  const TestWebServer server(behind_password());
  ASSERT_TRUE(base::write_file(folder_ / "home/.gitconfig", "[credential]\n\thelper = store\n"));
  std::string stored = server.url();
  stored.insert(stored.find("//") + 2, "ada:s3cr%25t-hunter2@");
  ASSERT_TRUE(base::write_file(folder_ / "home/.git-credentials", stored + "\n"));

  const auto fetched = fetch_repository({.where = server.url("/.git")}, {});

  ASSERT_TRUE(fetched) << fetched.error().to_string();
}

TEST_F(GitSource, AWrongPasswordIsRefusedAndNotPrinted) {
  make_repository();
  commit("a", "1");
  publish();
  const TestWebServer server(behind_password());

  const auto fetched =
      fetch_repository({.where = server.url("/.git"), .username = "ada", .password = "wr0ng"}, {});

  ASSERT_FALSE(fetched);
  EXPECT_EQ(fetched.error().code, ErrorCode::kRefused) << fetched.error().to_string();
  EXPECT_NE(fetched.error().what.find("rejects the given password"), std::string::npos);
  EXPECT_EQ(fetched.error().to_string().find("wr0ng"), std::string::npos);
}

TEST_F(GitSource, ARedirectTargetDoesNotGetThePassword) {
  make_repository();
  commit("a", "1");
  publish();
  const TestWebServer elsewhere(behind_password());
  const TestWebServer server({.redirect = elsewhere.url()});

  const auto fetched = fetch_repository(
      {.where = server.url("/.git"), .username = "ada", .password = std::string(kPassword)}, {});

  ASSERT_FALSE(fetched);
  EXPECT_EQ(fetched.error().code, ErrorCode::kRefused) << fetched.error().to_string();
  ASSERT_FALSE(elsewhere.heads().empty());
  for (const std::string& head : elsewhere.heads()) {
    EXPECT_EQ(head.find("Authorization"), std::string::npos) << head;
  }
}

TEST_F(GitSource, ThePasswordIsInNoArgumentAndInNoEnvironment) {
  const std::filesystem::path seen = folder_ / "seen";
  ASSERT_TRUE(base::write_file(folder_ / "git",
                               "#!/bin/sh\n"
                               "tr '\\0' '\\n' < /proc/$$/cmdline >> " +
                                   seen.string() +
                                   "\n"
                                   "tr '\\0' '\\n' < /proc/$$/environ >> " +
                                   seen.string() +
                                   "\n"
                                   "cat <&3 > " +
                                   seen.string() +
                                   ".pipe\n"
                                   "echo 'fatal: with s3cr%t-hunter2 or s3cr%25t-hunter2' >&2\n"
                                   "exit 1\n",
                               0700));
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", (folder_.path().string() + ":" + path).c_str(), 1);

  const auto fetched = fetch_repository({.where = "https://example.invalid/a.git",
                                         .username = "ada",
                                         .password = std::string(kPassword)},
                                        {});
  ::setenv("PATH", path.c_str(), 1);

  ASSERT_FALSE(fetched);
  EXPECT_NE(content_of(seen).find("credential.https://example.invalid.helper"), std::string::npos);
  EXPECT_EQ(content_of(seen).find("hunter2"), std::string::npos);
  EXPECT_EQ(content_of(seen.string() + ".pipe"), "username=ada\npassword=s3cr%t-hunter2\n");
  EXPECT_EQ(fetched.error().to_string().find("hunter2"), std::string::npos)
      << fetched.error().to_string();
}

// --- missing servers and invalid input

TEST_F(GitSource, AMissingServerIsUnavailable) {
  std::string url;
  {
    const TestWebServer server({.folder = folder_});
    url = server.url("/a.git");
  }
  const auto fetched = fetch_repository({.where = url}, {});

  ASSERT_FALSE(fetched);
  EXPECT_EQ(fetched.error().code, ErrorCode::kUnavailable) << fetched.error().to_string();
}

TEST_F(GitSource, InvalidInputIsRefusedBeforeGitRuns) {
  const std::vector<WorkspaceSource> cases{
      {.where = "--upload-pack=touch x"},
      {.where = "ext::touch x"},
      {.where = url(), .ref = "--upload-pack=touch x"},
      {.where = url(), .ref = "main:refs/heads/x"},
      {.where = "https://host/a.git", .password = "a\nurl=https://elsewhere"},
      {.where = "https://host/a.git", .username = "a\nb", .password = "x"},
      {.where = "git@host:a.git", .password = "x"},
  };
  for (const WorkspaceSource& source : cases) {
    const auto fetched = fetch_repository(source, {});
    ASSERT_FALSE(fetched) << source.where;
    EXPECT_EQ(fetched.error().code, ErrorCode::kInvalid) << fetched.error().to_string();
  }
  EXPECT_TRUE(temporary_is_empty());
}

TEST_F(GitSource, SshRunsWithoutPrompts) {
  ASSERT_TRUE(
      base::write_file(folder_ / "ssh",
                       "#!/bin/sh\necho \"$@\" > " + (folder_ / "arguments").string() +
                           "\necho 'git@host: Permission denied (publickey).' >&2\nexit 255\n",
                       0700));
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", (folder_.path().string() + ":" + path).c_str(), 1);

  const auto fetched = fetch_repository({.where = "git@example.invalid:a.git"}, {});
  ::setenv("PATH", path.c_str(), 1);

  ASSERT_FALSE(fetched);
  EXPECT_EQ(fetched.error().code, ErrorCode::kRefused) << fetched.error().to_string();
  EXPECT_NE(fetched.error().what.find("ssh keys"), std::string::npos) << fetched.error().what;
  EXPECT_NE(content_of(folder_ / "arguments").find("-oBatchMode=yes"), std::string::npos);
}

TEST(GitEnvironment, ContainsNoRedirectionsAndNoPrompts) {
  const auto environment =
      git_environment({"PATH=/bin", "GIT_DIR=/x", "GIT_TRACE_CURL=1", "GIT_SSL_CAINFO=/ca",
                       "SSH_ASKPASS=/a", "LC_ALL=de_DE", "GIT_ASKPASS=/b", "SSH_AUTH_SOCK=/s"});
  const auto has = [&](const std::string& entry) {
    return std::count(environment.begin(), environment.end(), entry) == 1;
  };
  for (const std::string entry :
       {"PATH=/bin", "GIT_SSL_CAINFO=/ca", "SSH_AUTH_SOCK=/s", "GIT_TERMINAL_PROMPT=0",
        "GIT_ASKPASS=", "LC_ALL=C", "GIT_ALLOW_PROTOCOL=https:http:ssh:git:file"}) {
    EXPECT_TRUE(has(entry)) << entry;
  }
  for (const std::string entry :
       {"GIT_DIR=/x", "GIT_TRACE_CURL=1", "SSH_ASKPASS=/a", "GIT_ASKPASS=/b", "LC_ALL=de_DE"}) {
    EXPECT_FALSE(has(entry)) << entry;
  }
}

TEST(GitEnvironment, KeepsTheUsersOwnSsh) {
  const auto environment = git_environment({"GIT_SSH_COMMAND=ssh -i /key"});

  EXPECT_EQ(std::count_if(environment.begin(), environment.end(),
                          [](const auto& entry) { return entry.starts_with("GIT_SSH_COMMAND="); }),
            1);
}

}  // namespace
}  // namespace muster::workspace
