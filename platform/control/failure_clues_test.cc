#include "control/failure_clues.h"

#include <gtest/gtest.h>

#include <csignal>

#include "control/test_launcher_words.h"

namespace muster::control {
namespace {

// Printed by Python 3.11.
constexpr std::string_view kNoModule = R"(
Traceback (most recent call last):
  File "/home/ada/train.py", line 6, in <module>
    train()
  File "/home/ada/train.py", line 4, in train
    import nosuchmodule
ModuleNotFoundError: No module named 'nosuchmodule'
)";

constexpr std::string_view kChained = R"(
Traceback (most recent call last):
  File "/home/ada/train.py", line 2, in <module>
    {}['rate']
    ~~^^^^^^^^
KeyError: 'rate'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/home/ada/train.py", line 4, in <module>
    raise SystemError('no rate')
SystemError: no rate
)";

LastLines joined(LastLines first, const LastLines& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST(Clue, OfATracebackIsTheExceptionAndWhereItWasRaised) {
  const auto clue = clue_in(lines_of(kNoModule), Printers::kOneProcess);

  ASSERT_TRUE(clue);
  EXPECT_EQ(clue->words, "ModuleNotFoundError: No module named 'nosuchmodule' (train.py, line 4)");
  EXPECT_NE(clue->advice.find("--workspace"), std::string::npos);
  EXPECT_EQ(clue->begin, 0U);
}

TEST(Clue, OfATracebackThroughLibrariesNamesTheUsersOwnLine) {
  const LastLines lines{
      "Traceback (most recent call last):", "  File \"/home/ada/train.py\", line 9, in main",
      "  File \"/usr/lib/python3/dist-packages/torch/nn/module.py\", line 1190, in f",
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"};

  const auto clue = clue_in(lines, Printers::kOneProcess);

  EXPECT_TRUE(clue->words.ends_with("2.00 GiB (train.py, line 9)")) << clue->words;
  EXPECT_NE(clue->advice.find("smaller batch"), std::string::npos);
}

TEST(Clue, OfChainedTracebacksIsTheLast) {
  for (const Printers printers : {Printers::kOneProcess, Printers::kSeveral}) {
    EXPECT_EQ(clue_in(lines_of(kChained), printers)->words,
              "SystemError: no rate (train.py, line 4)");
  }
}

TEST(Clue, OfSeveralProcessesIsTheFirstAndOfOneTheLast) {
  const LastLines lines =
      joined(lines_of(kNoModule),
             {"Traceback (most recent call last):", "  File \"x.py\", line 1, in <module>",
              "ConnectionResetError: peer has gone"});

  EXPECT_TRUE(clue_in(lines, Printers::kSeveral)->words.starts_with("ModuleNotFoundError"));
  EXPECT_EQ(clue_in(lines, Printers::kOneProcess)->words,
            "ConnectionResetError: peer has gone (x.py, line 1)");
}

TEST(Clue, IsFoundInTheWordsOfCommonMishaps) {
  const struct {
    std::string line;
    std::string advice;
  } cases[] = {
      {"RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0)", "smaller batch"},
      {"2026-01-31 E cuda_driver.cc: failed: CUDA_ERROR_OUT_OF_MEMORY: out", "smaller batch"},
      {"python3: error: No module named 'horovod'", "--workspace"},
      {"Host key verification failed.", "/generated/ssh"},
      {"root@host: Permission denied (publickey).", "/generated/ssh"},
      {"ssh: connect to host 10.0.0.1 port 22: Connection refused", "listens on another"},
      {"OSError: [Errno 98] Address already in use", "MASTER_PORT"},
      {"Error: listen EADDRINUSE: address already in use :::3000", "MASTER_PORT"},
      {"UnknownError: Could not start gRPC server", "TF_CONFIG"},
      {"cp: error writing 'x': No space left on device", "df -h"},
      {"sh: 1: cannot create /etc/x: Permission denied", "ls -l"},
      {"Bus error (core dumped)", "/dev/shm"},
      {"ncclSystemError: System call (e.g. socket, malloc) failed", "NCCL_DEBUG=INFO"},
      {"terminate called after throwing an instance of 'std::bad_alloc'", "--memory"},
      {"./a: error while loading shared libraries: libfoo.so.1", "LD_LIBRARY_PATH"},
      {"cat: data.csv: No such file or directory", "FOLDER"},
  };
  for (const auto& known : cases) {
    const auto clue = clue_in({"epoch 1", known.line, "bye"}, Printers::kOneProcess);
    ASSERT_TRUE(clue) << known.line;
    EXPECT_NE(clue->advice.find(known.advice), std::string::npos) << known.line;
    EXPECT_EQ(clue->begin, 1U);
  }
}

TEST(Clue, IsNotFoundInWhatOpenMpiSaysOfABusyMachine) {
  EXPECT_FALSE(
      clue_in({"[dist-launcher:00003] plm:rsh: Warning: setpgid(8,8) failed in parent with "
               "errno=Permission denied(13)"},
              Printers::kSeveral));
}

TEST(Clue, IsNotFoundLongBeforeTheEnd) {
  LastLines lines(30, "epoch");
  lines[2] = "Connection refused; trying again";

  EXPECT_FALSE(clue_in(lines, Printers::kOneProcess));
  EXPECT_FALSE(clue_in({}, Printers::kSeveral));
  EXPECT_FALSE(clue_in({"Traceback (most recent call last):", "  cut"}, Printers::kOneProcess));
}

TEST(Clue, OfAnImageSaysWhatCanBeDoneAboutItsContainer) {
  const struct {
    std::string line;
    std::string advice;
  } cases[] = {
      {"touch: cannot touch '/opt/x': Read-only file system", "--writable-root"},
      {"OSError: [Errno 30] Read-only file system: '/opt/x'", "--writable-root"},
      {"ping: socket: Operation not permitted", "--cap-add"},
      {"mount: /mnt: mount failed: Operation not permitted.", "--cap-add"},
      {"sudo: The \"no new privileges\" flag is set, which prevents sudo from running as root.",
       "--allow-new-privileges"},
      {"sh: 1: /armprog: Exec format error", "for the CPU"},
      {"exec /armprog: exec format error", "for the CPU"},
      {"Bus error (core dumped)", "--shm-size"},
      {"ModuleNotFoundError: No module named 'horovod'", "an image that has the package"},
      {"./a: error while loading shared libraries: libmpi.so.40", "an image that has the library"},
      {"OSError: [Errno 98] Address already in use", "MASTER_PORT"},
  };
  for (const auto& known : cases) {
    const auto clue =
        clue_in({"epoch 1", known.line, "bye"}, Printers::kOneProcess, Surroundings::kImage);
    ASSERT_TRUE(clue) << known.line;
    EXPECT_NE(clue->advice.find(known.advice), std::string::npos) << clue->advice;
  }
}

TEST(Clue, OfAWritableImageIsNoLongerThatItsRootIsNot) {
  const std::vector<std::string> lines{"touch: cannot touch '/data/x': Read-only file system"};

  EXPECT_EQ(clue_in(lines, Printers::kOneProcess, Surroundings::kWritableImage)->advice,
            clue_in(lines, Printers::kOneProcess)->advice);
}

TEST(ClueOfMpirun, IsWhyNothingWasStarted) {
  const auto clue = clue_of_mpirun(lines_of(kOpenMpiNotFound));

  ASSERT_TRUE(clue);
  EXPECT_EQ(clue->words, "mpirun did not find the program");
  EXPECT_EQ(clue->begin, 1U);
  EXPECT_FALSE(clue_of_mpirun(lines_of(kOpenMpiExit3)));
  // Printed by MPICH 4.0.2 and Intel MPI 2021.13 for the command of the documents.
  EXPECT_EQ(clue_of_mpirun({"[mpiexec@w0] match_arg (../common/util.c:83): unrecognized argument "
                            "allow-run-as-root"})
                ->words,
            "its mpirun is not Open MPI's");
}

}  // namespace
namespace {

struct RankEndCase {
  std::string name;
  std::string_view printed;
  RankEnd end;
};

TEST(FirstFailed, IsFoundInWhatEachLauncherPrints) {
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

TEST(WithoutLauncherWords, OnlyWhatTheProgramPrintedIsLeft) {
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

TEST(WithoutLauncherWords, AProgramsOwnRulesStay) {
  const LastLines lines{std::string(74, '-'), "epoch  loss", std::string(74, '-'), "1  0.5"};

  EXPECT_EQ(without_launcher_words(lines), lines);
}

}  // namespace
}  // namespace muster::control
