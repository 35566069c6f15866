#include "workspace/repository_url.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::workspace {
namespace {

TEST(RepositoryUrl, IsSplitIntoItsParts) {
  const std::vector<std::pair<std::string, RepositoryUrl>> cases{
      {"https://host/a/b.git", {.url = "https://host/a/b.git", .origin = "https://host"}},
      {"HTTPS://host:8443/b.git/",
       {.url = "https://host:8443/b.git/", .origin = "https://host:8443"}},
      {"git+https://host/a", {.url = "https://host/a", .origin = "https://host"}},
      {"http://[::1]:80/a.git", {.url = "http://[::1]:80/a.git", .origin = "http://[::1]:80"}},
      {"https://token@host/a.git",
       {.url = "https://host/a.git", .username = "token", .origin = "https://host"}},
      {"https://host:8443/a@b.git",
       {.url = "https://host:8443/a@b.git", .origin = "https://host:8443"}},
      {"ssh://git@host:22/a", {.url = "ssh://git@host:22/a", .over_ssh = true}},
      {"git+ssh://git@host/a", {.url = "ssh://git@host/a", .over_ssh = true}},
      {"git://host/a", {.url = "git://host/a"}},
      {"file:///srv/a", {.url = "file:///srv/a"}},
      {"git@host:a/b.git", {.url = "git@host:a/b.git", .over_ssh = true}},
  };
  for (const auto& [text, expected] : cases) {
    const auto url = parse_repository_url(text);
    ASSERT_TRUE(url) << text << ": " << url.error().to_string();
    EXPECT_EQ(*url, expected) << text << " became " << url->url << ", " << url->origin;
    EXPECT_TRUE(is_address(text)) << text;
  }
}

TEST(RepositoryUrl, IsRefusedIfGitWouldRunAProgramOrReadAnOption) {
  for (const std::string text :
       {"--upload-pack=touch /tmp/x", "-u", "ext::sh -c id", "ext::sh", "fd::3", "transport::addr",
        "ssh://-oProxyCommand=id/x", "git@-oProxyCommand=id:x", "git@host:-x", "ssh://-x@host/a",
        "file://host/a", "file://", "https:///a.git", "https://ho st/a.git", "https://host/a\n.git",
        "s3://bucket/a", "ftp://host/a.git", "https://host/a", "https://host/a.zip"}) {
    const auto url = parse_repository_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, base::ErrorCode::kInvalid) << text;
    EXPECT_FALSE(url.error().advice.empty()) << text;
  }
}

TEST(RepositoryUrl, APasswordInItIsRefusedAndNotPrinted) {
  for (const std::string text :
       {"https://ada:hunter2@host/a.git", "git+https://:hunter2@host/a", "http://a:hunter2@host",
        "ssh://ada:hunter2@host/a", "s3://ada:hunter2@bucket", "https://ada:hunter2/x@host/a.git",
        "https://ada:hunter2@host/a b", "git:hunter2@host:a/b.git", "ext://a:hunter2@b"}) {
    ASSERT_TRUE(is_address(text)) << text;
    const auto url =
        parse_repository_url(text, {.username = "--workspaceUsername", .password = "--secret"});
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().to_string().find("hunter2"), std::string::npos) << text;
    EXPECT_NE(url.error().advice.find("--secret"), std::string::npos) << text;
    const auto without = parse_repository_url(text).error();
    EXPECT_NE(without.advice.find("git help credentials"), std::string::npos) << text;
  }
}

TEST(RepositoryUrl, APathIsNotAnAddress) {
  for (const std::string text : {".", "./a:b", "/srv/a@b:c", "../x", "src", "a b", "C:", "data.zip",
                                 "host:path", "a/b@c:d", "::", "./ext::x"}) {
    EXPECT_FALSE(is_address(text)) << text;
  }
}

TEST(RepositoryUrl, GivesAdviceForWebAddresses) {
  EXPECT_NE(parse_repository_url("https://host/a").error().advice.find("git+https://host/a"),
            std::string::npos);
  EXPECT_NE(parse_repository_url("https://host/a.zip").error().advice.find("download"),
            std::string::npos);
  EXPECT_NE(parse_repository_url("s3://bucket/a").error().advice.find("aws s3 cp"),
            std::string::npos);
}

TEST(Ref, AcceptsBranchesTagsAndCommits) {
  for (const std::string ref :
       {"main", "feature/x", "v1.0", "refs/pull/12/head", "0123abc", "a-b"}) {
    EXPECT_TRUE(check_ref(ref)) << ref;
  }
}

TEST(Ref, RefusesOptionsAndRefspecs) {
  for (const std::string ref : {"", "-x", "--upload-pack=x", "+main", "a:b", "a..b", "a b", "a\nb",
                                "main~1", "main^", "@{u}", "refs/heads/*", "/a"}) {
    EXPECT_FALSE(check_ref(ref)) << ref;
  }
}

TEST(Ref, ACommitIsHexadecimal) {
  EXPECT_TRUE(may_be_commit("deadbeef"));
  EXPECT_TRUE(may_be_commit(std::string(40, 'a')));
  EXPECT_FALSE(may_be_commit("abc"));
  EXPECT_FALSE(may_be_commit("main"));
  EXPECT_FALSE(may_be_commit("DEADBEEF"));
  EXPECT_FALSE(may_be_commit(std::string(65, 'a')));
}

}  // namespace
}  // namespace muster::workspace
