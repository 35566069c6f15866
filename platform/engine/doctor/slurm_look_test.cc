// look_at_slurm(), with fake programs in place of Slurm's.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fstream>

#include "base/unique_fd.h"
#include "engine/doctor/doctor.h"
#include "engine/doctor/test_programs.h"
#include "http/test_raw_server.h"

namespace muster::engine::doctor {

using job::Finding;

namespace {

class SlurmLook : public ::testing::Test {
 protected:
  SlurmLook() {
    for (const char* name : {"sbatch", "squeue", "scancel", "srun", "sinfo"}) {
      programs_.add(name, "echo slurm 23.11.4");
    }
    programs_.add("scontrol",
                  "case $1 in ping) echo 'Slurmctld(primary) at head is UP';; "
                  "show) echo 'ClusterName = atlas';; *) echo slurm 23.11.4;; esac");
    programs_.add("munge", "echo MUNGE:a-credential");
  }

  SlurmPlaces places() {
    SlurmPlaces places{.environment = programs_.environment(),
                       .jobs_folder = folder_ / "jobs",
                       .root = folder_.path()};
    places.options.programs = programs_.folder();
    places.options.callback_bind = "127.0.0.1";
    return places;
  }

  StandIns programs_;
  base::TestFolder folder_;
};

TEST_F(SlurmLook, RunsEachProgram) {
  programs_.add("muster-node", "exit 0");
  std::filesystem::create_directories(folder_ / "etc/slurm");
  std::ofstream(folder_ / "etc/slurm/slurm.conf") << "ClusterName=atlas\n";

  const SlurmFacts facts = look_at_slurm(places());

  EXPECT_EQ(answer_in(facts.answers, "ping").output, "Slurmctld(primary) at head is UP\n");
  EXPECT_EQ(answer_in(facts.answers, "config").output, "ClusterName = atlas\n");
  EXPECT_TRUE(answer_in(facts.answers, "munge").is_good());
  EXPECT_EQ(answer_in(facts.answers, "munge").output, "");
  EXPECT_FALSE(answer_in(facts.answers, "dbd").is_there());
  EXPECT_EQ(facts.config_file, (folder_ / "etc/slurm/slurm.conf").string());
  EXPECT_TRUE(facts.has_node_program);
  EXPECT_FALSE(facts.rest);
  EXPECT_FALSE(facts.cannot_bind);
  EXPECT_EQ(facts.port, 0);
  EXPECT_FALSE(facts.hosts.empty());
  EXPECT_TRUE(can_run(diagnose(facts)));
}

TEST_F(SlurmLook, UsesOnlyANamedConfiguration) {
  SlurmPlaces there = places();
  std::filesystem::create_directories(folder_ / "etc/slurm");
  std::ofstream(folder_ / "etc/slurm/slurm.conf") << "\n";
  there.environment.push_back("SLURM_CONF=" + (folder_ / "none.conf").string());
  EXPECT_EQ(look_at_slurm(there).config_file, "");
}

TEST_F(SlurmLook, ReportsAPortInUse) {
  const base::UniqueFd taken(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const where = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(taken.get(), where, size), 0);
  ASSERT_EQ(::listen(taken.get(), 1), 0);
  ASSERT_EQ(::getsockname(taken.get(), where, &size), 0);

  SlurmPlaces there = places();
  there.options.callback_port = ntohs(address.sin_port);
  SlurmFacts facts = look_at_slurm(there);
  ASSERT_TRUE(facts.cannot_bind);
  EXPECT_NE(facts.cannot_bind->what.find("cannot listen at 127.0.0.1:"), std::string::npos);

  there.server_runs = true;
  EXPECT_FALSE(look_at_slurm(there).cannot_bind);
  there.server_runs = false;
  there.options.callback_bind = "head";
  EXPECT_TRUE(look_at_slurm(there).cannot_bind);
}

TEST_F(SlurmLook, ReportsASlurmrestdThatDoesNotAnswer) {
  SlurmPlaces there = places();
  there.options.rest = "unix://" + (folder_ / "none.sock").string();
  const SlurmFacts facts = look_at_slurm(there);
  ASSERT_TRUE(facts.rest);
  EXPECT_TRUE(facts.rest->is_configured);
  EXPECT_FALSE(facts.rest->answer);
  EXPECT_FALSE(can_run(diagnose(facts)));
}

TEST_F(SlurmLook, FallsBackToSlurmsProgramsWithoutSlurmrestd) {
  programs_.add("muster-node", "exit 0");
  SlurmPlaces there = places();
  there.options.rest = "auto";
  EXPECT_FALSE(look_at_slurm(there).rest);

  std::filesystem::create_directories(folder_ / "run");
  std::ofstream(folder_ / "run/slurmrestd.socket") << "";
  const SlurmFacts facts = look_at_slurm(there);
  ASSERT_TRUE(facts.rest);
  EXPECT_EQ(facts.rest->place, "unix://" + (folder_ / "run/slurmrestd.socket").string());
  EXPECT_FALSE(facts.rest->is_configured);
  EXPECT_FALSE(facts.rest->answer);
}

/// A server decides by the connection alone.
TEST_F(SlurmLook, ASlurmrestdThatListensIsUsedEvenIfItDoesNotAnswer) {
  const auto closes = [](http::RawConnection&) {};
  http::RawServer slurmrestd({closes, closes});
  SlurmPlaces there = places();
  there.options.rest = "auto";
  std::filesystem::create_directories(folder_ / "run");
  std::filesystem::create_symlink(slurmrestd.path(), folder_ / "run/slurmrestd.socket");

  const SlurmFacts facts = look_at_slurm(there);

  ASSERT_TRUE(facts.rest);
  EXPECT_TRUE(facts.rest->is_configured);
  EXPECT_FALSE(facts.rest->answer);
  EXPECT_FALSE(can_run(diagnose(facts)));
}

}  // namespace
}  // namespace muster::engine::doctor
