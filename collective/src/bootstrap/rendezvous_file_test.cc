#include "bootstrap/rendezvous_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>

namespace muster::collective {
namespace {

namespace fs = std::filesystem;

class RendezvousFile : public ::testing::Test {
 protected:
  RendezvousFile() {
    std::string pattern = (fs::temp_directory_path() / "rendezvous-file-test-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    path_ = root_ + "/private/world";
  }
  ~RendezvousFile() override { fs::remove_all(root_); }

  std::string root_;
  std::string path_;
  Meeting meeting_{"127.0.0.1:4000", Bytes(32, std::byte{7})};
};

TEST_F(RendezvousFile, IsFoundAsItWasPublishedAndGoesAwayAfterwards) {
  {
    const auto publication = publish(path_, meeting_);
    ASSERT_TRUE(publication) << publication.error().to_string();
    const auto found = find_meeting(path_);
    ASSERT_TRUE(found && found->has_value());
    EXPECT_EQ((*found)->endpoint, meeting_.endpoint);
    EXPECT_EQ((*found)->key, meeting_.key);
  }
  EXPECT_TRUE(fs::is_empty(root_ + "/private"));
}

TEST_F(RendezvousFile, IsForItsUserAlone) {
  const auto publication = publish(path_, meeting_);
  struct stat status = {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat((root_ + "/private").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(RendezvousFile, IsNotThereYetIsNoError) {
  const auto found = find_meeting(path_);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->has_value());
}

TEST_F(RendezvousFile, ReplacesOneThatAKilledRunLeft) {
  auto stale = publish(path_, {"127.0.0.1:1", Bytes(32, std::byte{1})});
  const auto fresh = publish(path_, meeting_);
  ASSERT_TRUE(fresh) << fresh.error().to_string();
  EXPECT_EQ((**find_meeting(path_)).endpoint, meeting_.endpoint);
}

TEST_F(RendezvousFile, IsNotPutWhereOthersCouldReadIt) {
  fs::create_directory(root_ + "/private");
  ::chmod((root_ + "/private").c_str(), 0755);
  const auto publication = publish(path_, meeting_);
  ASSERT_FALSE(publication);
  EXPECT_EQ(publication.error().message,
            root_ + "/private is open to other users, so the key in it would not be safe");
}

TEST_F(RendezvousFile, IsNotPutBehindALink) {
  fs::create_directory(root_ + "/elsewhere");
  fs::create_directory_symlink(root_ + "/elsewhere", root_ + "/private");
  EXPECT_FALSE(publish(path_, meeting_));
}

TEST_F(RendezvousFile, IsNotBelievedWhenOthersCouldHaveReadIt) {
  const auto publication = publish(path_, meeting_);
  ::chmod(path_.c_str(), 0640);
  const auto found = find_meeting(path_);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kConfiguration);
}

TEST_F(RendezvousFile, IsNotReadThroughALink) {
  const auto publication = publish(path_, meeting_);
  fs::create_symlink(path_, root_ + "/private/link");
  EXPECT_FALSE(find_meeting(root_ + "/private/link"));
}

TEST(RendezvousFileName, IsTheSameOnAllRanksOfARunAndNoOther) {
  using Environment = std::map<std::string, std::string>;
  const auto name_in = [](Environment environment) {
    environment.emplace("PMIX_SERVER_URI2", "1.0;tcp4://127.0.0.1:1");
    return *rendezvous_file_of([&](const std::string& name) -> std::optional<std::string> {
      const auto found = environment.find(name);
      if (found == environment.end()) return std::nullopt;
      return found->second;
    });
  };
  const std::string name = name_in({{"PMIX_NAMESPACE", "1"}, {"PMIX_RANK", "0"}});
  EXPECT_EQ(name, name_in({{"PMIX_NAMESPACE", "1"}, {"PMIX_RANK", "1"}}));
  EXPECT_NE(name, name_in({{"PMIX_NAMESPACE", "2"}}));
  EXPECT_NE(name, name_in({{"PMIX_NAMESPACE", "1"}, {"PMIX_SERVER_URI2", "another port"}}));
  EXPECT_TRUE(name_in({{"PMIX_NAMESPACE", "1"}, {"XDG_RUNTIME_DIR", "/tmp"}})
                  .starts_with("/tmp/muster-collective/"));
  EXPECT_TRUE(name_in({{"PMIX_NAMESPACE", "1"}, {"XDG_RUNTIME_DIR", "/nowhere"}})
                  .starts_with("/tmp/muster-collective-"));
}

}  // namespace
}  // namespace muster::collective
