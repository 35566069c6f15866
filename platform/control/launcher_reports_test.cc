#include "control/launcher_reports.h"

#include <gtest/gtest.h>

#include <csignal>

#include "control/test_launcher_words.h"

namespace muster::control {
namespace {

struct RankEndCase {
  std::string name;
  std::string_view printed;
  RankEnd end;
};

TEST(FirstFailed, IsFoundInTheOutputOfEachLauncher) {
  const RankEndCase cases[] = {
      {"Open MPI, exit code", kOpenMpiExit3, {.rank = 1, .host = {}, .status = {.code = 3}}},
      {"Open MPI, killed",
       kOpenMpiKilled,
       {.rank = 1, .host = "dist-worker-1", .status = {.signal = SIGKILL}}},
      {"Open MPI, segfault",
       kOpenMpiSegfault,
       {.rank = 1, .host = "dist-worker-1", .status = {.signal = SIGSEGV}}},
      {"Open MPI, MPI_Abort",
       kOpenMpiAbort,
       {.rank = 1, .host = {}, .status = {.code = 5}, .aborted = true}},
      {"Open MPI, no MPI_Finalize",
       kOpenMpiUnfinalized,
       {.rank = 1, .host = "dist-worker-1", .status = {}, .unfinalized = true}},
      {"MPICH, killed",
       kMpichKilled,
       {.rank = {}, .host = "dist-worker-1", .status = {.signal = SIGKILL}}},
      {"MPICH, segfault",
       kMpichSegfault,
       {.rank = {}, .host = "dist-worker-1", .status = {.signal = SIGSEGV}}},
      {"MPICH, another process named",
       kMpichSegfaultBesideOthers,
       {.rank = {}, .host = "", .status = {.signal = SIGSEGV}}},
      {"MPICH, MPI_Abort",
       kMpichAbort,
       {.rank = 1, .host = {}, .status = {.code = 5}, .aborted = true}},
      {"torchrun, raised", kTorchrunRaised, {.rank = 1, .host = {}, .status = {.code = 1}}},
      {"torchrun, killed", kTorchrunKilled, {.rank = 1, .host = {}, .status = {.signal = SIGKILL}}},
  };
  for (const RankEndCase& known : cases) {
    EXPECT_EQ(first_failed(lines_of(known.printed)), known.end) << known.name;
  }
}

TEST(LostHost, IsNamedByMpirunOrByItsRemoteShell) {
  EXPECT_EQ(lost_host_in(lines_of(kOpenMpiLostDaemon)), "dist-worker-0");
  EXPECT_EQ(lost_host_in(lines_of(kOpenMpiLostSession)), "127.44.0.3");
  EXPECT_EQ(lost_host_in({"muster-rsh: dist-worker-1 closed the connection",
                          "ORTE was unable to reliably start one or more daemons."}),
            "dist-worker-1");
  // Without a message of mpirun, a closed connection is the usual end of a job.
  EXPECT_EQ(lost_host_in({"Connection to 127.44.0.3 closed by remote host."}), std::nullopt);
  EXPECT_EQ(lost_host_in(lines_of(kOpenMpiKilled)), std::nullopt);
}

TEST(FirstFailed, IsFoundInTheFormsOfLaunchersThatAreNotInstalledHere) {
  const RankEnd exited{.rank = 2, .host = {}, .status = {.code = 3}};
  EXPECT_EQ(first_failed({"   Process name: [prterun-n1-4711@1,2]", "   Exit code:    3"}), exited);
  EXPECT_EQ(first_failed({"Process name: 2", "Exit code: 3"}), exited);
  EXPECT_EQ(first_failed({"Exit code: 3", "Process name: 2"}), exited);
  EXPECT_EQ(
      first_failed({"Process 2 exit with status code 3.", "Process 0 exit with status code 1."}),
      exited);
  EXPECT_EQ(first_failed({"MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD",
                          "  Proc: [[1,1],2]", "  Errorcode: 3"}),
            (RankEnd{.rank = 2, .host = {}, .status = {.code = 3}, .aborted = true}));
}

TEST(FirstFailed, IsTheRankThatMustersHorovodrunNames) {
  const auto end_in = [](const std::string& sentence) {
    return first_failed({"epoch 1", "horovodrun: rank 2 on dist-worker-1 " + sentence, "bye"});
  };
  const std::string host = "dist-worker-1";
  EXPECT_EQ(end_in("ended with exit code 3; see its lines above; ending the other rank"),
            (RankEnd{.rank = 2, .host = host, .status = {.code = 3}}));
  EXPECT_EQ(end_in("ended with exit code 137 (the code of shells after SIGKILL: ...)"),
            (RankEnd{.rank = 2, .host = host, .status = {.code = 137}}));
  EXPECT_EQ(end_in("was killed by SIGKILL: the system does so if memory is short"),
            (RankEnd{.rank = 2, .host = host, .status = {.signal = SIGKILL}}));
  EXPECT_EQ(end_in("was killed by SIGTERM; ending the other rank"),
            (RankEnd{.rank = 2, .host = host, .status = {.signal = SIGTERM}}));
  EXPECT_EQ(end_in("was killed by signal 35"),
            (RankEnd{.rank = 2, .host = host, .status = {.signal = 35}}));
  EXPECT_EQ(
      end_in("is gone: its host was lost; ending the other rank"),
      (RankEnd{.rank = 2, .host = host, .status = {.lost = true, .error = "its host was lost"}}));
  EXPECT_EQ(end_in("was killed by a user"), std::nullopt);
  EXPECT_EQ(end_in("does not come back"), std::nullopt);
}

TEST(FirstFailed, OfSeveralRanksThatTorchrunNoticedTogetherIsTheKilledOneOrUnknown) {
  const auto report = [](const std::string& other_time, const std::string& other_code) {
    return LastLines{"Failures:",
                     "[1]:",
                     "  time      : " + other_time,
                     "  host      : dist-master",
                     "  rank      : 1 (local_rank: 1)",
                     "  exitcode  : " + other_code + " (pid: 7)",
                     "  error_file: <N/A>",
                     std::string(60, '-'),
                     "Root Cause (first observed failure):",
                     "[0]:",
                     "  time      : 2026-11-30_11:04:07",
                     "  host      : dist-master",
                     "  rank      : 0 (local_rank: 0)",
                     "  exitcode  : 1 (pid: 6)"};
  };
  const std::string same = "2026-11-30_11:04:07";
  EXPECT_EQ(first_failed(report(same, "1")), (RankEnd{.host = {}, .status = {.code = 1}}));
  EXPECT_EQ(first_failed(report(same, "-9")),
            (RankEnd{.rank = 1, .host = {}, .status = {.signal = SIGKILL}}));
  const RankEnd first{.rank = 0, .host = {}, .status = {.code = 1}};
  EXPECT_EQ(first_failed(report("2026-11-30_11:04:12", "1")), first);
  EXPECT_EQ(first_failed(report(same, "-15")), first) << "torchrun stopped it";
}

TEST(FirstFailed, IsOfIntelsFramesTheOneThatHydraDidNotKillItself) {
  const auto frame = [](int rank, const std::string& end) {
    return LastLines{
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
        "=   RANK " + std::to_string(rank) + " PID 12 RUNNING AT n" + std::to_string(rank),
        "=   " + end, std::string(83, '=')};
  };
  LastLines lines = frame(0, "KILLED BY SIGNAL: 9 (Killed)");
  lines.resize(14);
  const LastLines cause = frame(3, "KILLED BY SIGNAL: 11 (Segmentation fault)");
  lines.insert(lines.end(), cause.begin(), cause.end());

  EXPECT_EQ(first_failed(lines), (RankEnd{.rank = 3, .host = "n3", .status = {.signal = SIGSEGV}}));
  EXPECT_EQ(first_failed(frame(0, "EXIT STATUS: 4")),
            (RankEnd{.rank = 0, .host = "n0", .status = {.code = 4}}));
}

TEST(FirstFailed, IsThatOfTheLastProgramOfSeveral) {
  LastLines lines = lines_of(kOpenMpiExit3);
  const LastLines last = lines_of(kOpenMpiKilled);
  lines.insert(lines.end(), last.begin(), last.end());

  EXPECT_EQ(first_failed(lines)->status.signal, SIGKILL);
}

TEST(FirstFailed, IsNotReadIntoOtherWords) {
  const LastLines cases[] = {{},
                             {"rank 1 exited with code 3"},
                             {"Process name: trainer", "Exit code: 3"},
                             {"Process name: [[1,1],1]"},
                             {"mpirun noticed that process rank"},
                             {"mpirun has exited due to process rank 1 with PID 0 on"},
                             {"Abort(soon)"},
                             {"Root Cause (first observed failure):", "the disk"}};
  for (const LastLines& lines : cases) EXPECT_EQ(first_failed(lines), std::nullopt);
}

TEST(WithoutLauncherWords, OnlyTheOutputOfTheProgramRemains) {
  EXPECT_EQ(without_launcher_words(lines_of(kOpenMpiExit3)), LastLines{});
  EXPECT_EQ(without_launcher_words(lines_of(kOpenMpiAbort)), LastLines{});
  EXPECT_EQ(without_launcher_words(lines_of(kOpenMpiUnfinalized)), LastLines{});
  EXPECT_EQ(without_launcher_words(lines_of(kMpichAbort)), LastLines{});
  EXPECT_EQ(without_launcher_words(lines_of(kTorchrunKilled)), LastLines{});
  EXPECT_EQ(without_launcher_words(lines_of(kOpenMpiSegfault)).size(), 7U);
  EXPECT_EQ(without_launcher_words(lines_of(kMpichKilled)),
            (LastLines{"rank 1 here", "about to fail", "", "rank 0 here"}));
  EXPECT_EQ(without_launcher_words(lines_of(kMpichSegfault)).back(),
            "=================================");
  EXPECT_EQ(without_launcher_words(lines_of(kTorchrunRaised)).back(),
            "ValueError: bad value in rank 1");
}

TEST(WithoutLauncherWords, TheReportOfHorovodrunIsNoOutputOfTheProgram) {
  EXPECT_EQ(
      without_launcher_words(
          {"epoch 1", "horovodrun: rank 1 on n1 was killed by SIGKILL; ending the other rank"}),
      LastLines{"epoch 1"});
}

TEST(WithoutLauncherWords, AProgramsOwnRulesStay) {
  const LastLines lines{std::string(74, '-'), "epoch  loss", std::string(74, '-'), "1  0.5"};

  EXPECT_EQ(without_launcher_words(lines), lines);
}

}  // namespace
}  // namespace muster::control
