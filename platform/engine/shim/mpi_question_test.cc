#include "engine/shim/mpi_question.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/test_folder.h"
#include "engine/shim/channels.h"

namespace muster::engine {
namespace {

class MpiAsked : public testing::Test {
 protected:
  /// Installs a script as mpirun.
  void install(const std::string& script) {
    ASSERT_TRUE(base::write_file(folder_ / "mpirun", "#!/bin/sh\n" + script + "\n", 0755));
  }

  MpiQuestion question() const {
    return {.environment = {"PATH=" + folder_.path().string() + ":/usr/bin:/bin", "MINE=yes"},
            .folder = folder_.path().string()};
  }

  std::optional<MpiAnswer> ask() const { return ask_mpi("mpirun", question()); }

  base::TestFolder folder_;
};

TEST_F(MpiAsked, IsRecognisedByItsVersion) {
  install("echo \"mpirun (Open MPI) 4.1.4\"; echo; echo Report bugs");

  EXPECT_EQ(ask(), (MpiAnswer{.version = job::MpiVersion{job::MpiKind::kOpenMpi, 4, "4.1.4"},
                              .first_line = "mpirun (Open MPI) 4.1.4"}));
}

TEST_F(MpiAsked, HasTheTasksEnvironmentAndFolderAndNoInput) {
  install("echo \"$1 $MINE $PWD $(wc -c)\"");

  EXPECT_EQ(ask()->first_line, "--version yes " + folder_.path().string() + " 0");
}

TEST_F(MpiAsked, AMissingProgramGivesNoAnswer) {
  EXPECT_EQ(ask_mpi("mpirun", {.environment = {"PATH=" + folder_.path().string()},
                               .folder = folder_.path().string()}),
            std::nullopt);
}

TEST_F(MpiAsked, TheAnswerQuotesAnUnknownProgram) {
  install("printf '\\n\\033[1msrun 22.05\\n' >&2; exit 1");

  const auto answer = ask();

  EXPECT_FALSE(answer->is_known());
  EXPECT_EQ(answer->first_line, "?[1msrun 22.05");
  EXPECT_EQ(
      notice_of(*answer, {}),
      "'mpirun --version' printed '?[1msrun 22.05': Muster does not support this MPI and treats "
      "it as Open MPI");
}

TEST_F(MpiAsked, AProgramThatNeverAnswersIsKilledWithItsChildren) {
  install("sleep 1000 & echo $! > pid; echo begun; wait");
  // On a busy machine the program may need long before it prints.
  for (auto patience = std::chrono::milliseconds(300);; patience *= 2) {
    ASSERT_LT(patience, std::chrono::minutes(1)) << "the program has not printed";
    std::filesystem::remove(folder_ / "pid");
    MpiQuestion question = this->question();
    question.patience = patience;
    const auto answer = ask_mpi("mpirun", question);
    if (answer && answer->first_line == "begun") break;
  }

  const auto pid = base::read_file(folder_ / "pid");
  ASSERT_TRUE(pid);
  const auto pidfd = base::open_pidfd(std::stoi(*pid));
  pollfd watched{pidfd ? pidfd->get() : -1, POLLIN, 0};
  EXPECT_TRUE(!pidfd || ::poll(&watched, 1, 60'000) > 0) << "the process runs on";
}

TEST_F(MpiAsked, AProcessLeftBehindDoesNotDelayTheAnswer) {
  install("echo 'mpirun (Open MPI) 5.0.3'; sleep 1000 &");

  EXPECT_EQ(ask()->version->version, "5.0.3");
}

TEST_F(MpiAsked, EndlessOutputIsCut) {
  install("exec yes");

  EXPECT_EQ(ask()->first_line, "y");
}

TEST_F(MpiAsked, CanBeInterrupted) {
  install("exec sleep 1000");
  auto control = make_control();
  ASSERT_TRUE(control);
  control->there.reset();
  MpiQuestion question = this->question();
  question.interrupted_by = control->here.get();

  EXPECT_EQ(ask_mpi("mpirun", question), std::nullopt);
}

const launch::MpiChoice kChoice{
    .program = "mpirun",
    .variants = {{job::MpiKind::kOpenMpi, {.environment = {{"OMPI", "1"}}, .files = {}}},
                 {job::MpiKind::kIntel,
                  {.environment = {{"I_MPI", "1"}}, .files = {{"hostfile", "hostfile.intel"}}}}}};

TEST(MpiVariant, TheAnswerSelectsTheVariant) {
  const MpiAnswer intel{.version = job::MpiVersion{job::MpiKind::kIntel, 2021, "2021.13"}};
  const MpiAnswer mpich{.version = job::MpiVersion{job::MpiKind::kMpich, 4, "4.0.2"}};

  EXPECT_EQ(variant_for(kChoice, intel), kChoice.variants.at(job::MpiKind::kIntel));
  EXPECT_EQ(variant_for(kChoice, mpich), launch::MpiChoice::Variant{});
  EXPECT_EQ(variant_for(kChoice, MpiAnswer{}), kChoice.variants.at(job::MpiKind::kOpenMpi));
}

TEST(MpiVariant, OverridesVariablesOfTheTask) {
  std::vector<std::string> environment{"A=1", "B=2"};
  add_variables({.environment = {{"B", "3"}, {"C", "4"}}, .files = {}}, environment);

  EXPECT_EQ(environment, (std::vector<std::string>{"A=1", "B=3", "C=4"}));
}

TEST(MpiVariant, CopiesItsFilesInPlace) {
  const base::TestFolder folder;
  ASSERT_TRUE(base::write_new_file(folder / "hostfile", "a slots=2\nb slots=2\n"));
  ASSERT_TRUE(base::write_new_file(folder / "hostfile.intel", "a:2\n"));
  ASSERT_EQ(::link((folder / "hostfile").c_str(), (folder / "seen elsewhere").c_str()), 0);

  ASSERT_TRUE(copy_files(kChoice.variants.at(job::MpiKind::kIntel), folder.path().string()));

  EXPECT_EQ(*base::read_file(folder / "seen elsewhere"), "a:2\n");
}

TEST(MpiVariant, TheErrorNamesAMissingFile) {
  const base::TestFolder folder;

  const auto copied = copy_files(kChoice.variants.at(job::MpiKind::kIntel), folder.path().string());

  ASSERT_FALSE(copied);
  EXPECT_NE(copied.error().what.find("hostfile.intel"), std::string::npos);
}

TEST(MpiAnswer, SurvivesEncodingAndDecoding) {
  const MpiAnswer known{.version = job::MpiVersion{job::MpiKind::kIntel, 2021, "2021.13 b 7"}};
  const MpiAnswer unknown{.version = {}, .first_line = "srun 22.05"};

  EXPECT_EQ(read_mpi_answer(encode(known)), known);
  EXPECT_EQ(read_mpi_answer(encode(unknown)), unknown);
  EXPECT_EQ(read_mpi_answer(encode(MpiAnswer{})), MpiAnswer{});
  for (const char* other : {"hello", "mpi", "mpi ", "mpi 7 1 x", "mpi 0 x y", R"({"code":1})"}) {
    EXPECT_EQ(read_mpi_answer(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace muster::engine
