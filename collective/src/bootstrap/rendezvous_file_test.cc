#include "bootstrap/rendezvous_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "bootstrap/test_values.h"

namespace muster::collective {
namespace {

namespace fs = std::filesystem;

using testing::Environment;
using testing::lookup_in;

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

TEST_F(RendezvousFile, IsReadAsPublishedAndRemovedAfterwards) {
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

TEST_F(RendezvousFile, IsReadableByItsUserOnly) {
  const auto publication = publish(path_, meeting_);
  struct stat status = {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat((root_ + "/private").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(RendezvousFile, ThatDoesNotExistYetIsNotAnError) {
  const auto found = find_meeting(path_);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->has_value());
}

TEST_F(RendezvousFile, ReplacesAFileThatAKilledRunLeft) {
  auto stale = publish(path_, {"127.0.0.1:1", Bytes(32, std::byte{1})});
  const auto fresh = publish(path_, meeting_);
  ASSERT_TRUE(fresh) << fresh.error().to_string();
  EXPECT_EQ((**find_meeting(path_)).endpoint, meeting_.endpoint);
}

TEST_F(RendezvousFile, IsNotWrittenWhereOthersCouldReadIt) {
  fs::create_directory(root_ + "/private");
  ::chmod((root_ + "/private").c_str(), 0755);
  const auto publication = publish(path_, meeting_);
  ASSERT_FALSE(publication);
  EXPECT_EQ(publication.error().message,
            root_ + "/private is open to other users, so the key in it would not be safe");
}

TEST_F(RendezvousFile, IsNotWrittenThroughALink) {
  fs::create_directory(root_ + "/elsewhere");
  fs::create_directory_symlink(root_ + "/elsewhere", root_ + "/private");
  EXPECT_FALSE(publish(path_, meeting_));
}

TEST_F(RendezvousFile, IsNotUsedIfOthersCouldHaveReadIt) {
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

TEST(RendezvousFileName, IsAHashOfTheRunInAPrivateFolder) {
  EXPECT_EQ(rendezvous_file_of("a", lookup_in({})), rendezvous_file_of("a", lookup_in({})));
  EXPECT_NE(rendezvous_file_of("a", lookup_in({})), rendezvous_file_of("b", lookup_in({})));
  EXPECT_TRUE(rendezvous_file_of("a", lookup_in({{"XDG_RUNTIME_DIR", "/tmp"}}))
                  .starts_with("/tmp/muster-collective/"));
  EXPECT_TRUE(rendezvous_file_of("a", lookup_in({{"XDG_RUNTIME_DIR", "/nowhere"}}))
                  .starts_with("/tmp/muster-collective-"));
}

TEST(Run, OfAnMpirunIsTheSameOnAllItsRanksAndNoOther) {
  const auto run_in = [](Environment environment) {
    environment.emplace("PMIX_SERVER_URI2", "1.0;tcp4://127.0.0.1:1");
    return run_of_mpirun(lookup_in(std::move(environment)));
  };
  const auto run = run_in({{"PMIX_NAMESPACE", "1"}, {"PMIX_RANK", "0"}});
  EXPECT_TRUE(run);
  EXPECT_EQ(run, run_in({{"PMIX_NAMESPACE", "1"}, {"PMIX_RANK", "1"}}));
  EXPECT_NE(run, run_in({{"PMIX_NAMESPACE", "2"}}));
  EXPECT_NE(run, run_in({{"PMIX_NAMESPACE", "1"}, {"PMIX_SERVER_URI2", "another port"}}));
  EXPECT_FALSE(run_of_mpirun(lookup_in({{"PMIX_NAMESPACE", "1"}})));
}

TEST(Run, OfASlurmStepIsItsJobAndStep) {
  const auto run = run_of_slurm(lookup_in({{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}}));
  EXPECT_TRUE(run);
  EXPECT_NE(run, run_of_slurm(lookup_in({{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "1"}})));
  EXPECT_FALSE(run_of_slurm(lookup_in({{"SLURM_JOB_ID", "7"}})));
}

TEST(Run, OfTorchrunContainsItsAgent) {
  const auto lookup = lookup_in({{"MASTER_PORT", "29500"}, {"TORCHELASTIC_RUN_ID", "none"}});
  const auto run = run_of_torchrun(lookup, ::getpid());
  ASSERT_TRUE(run);
  EXPECT_NE(run->find("torchrun " + std::to_string(::getppid()) + " since "), std::string::npos);
  EXPECT_FALSE(run_of_torchrun(lookup_in({}), ::getpid()));
}

TEST(Run, OfHydraNeedsItsProxy) {
  EXPECT_FALSE(run_of_hydra(::getpid())) << "no test is started by an mpiexec";
}

}  // namespace
}  // namespace muster::collective
