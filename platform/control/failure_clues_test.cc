#include "control/failure_clues.h"

#include <gtest/gtest.h>

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

// Printed by PyTorch 1.13.
const LastLines kOfLoader{
    "Traceback (most recent call last):",
    "  File \"/home/ada/train.py\", line 7, in <module>",
    "    for b in loader: pass",
    "  File \"/usr/lib/python3/dist-packages/torch/_utils.py\", line 543, in reraise",
    "    raise exception",
    "KeyError: Caught KeyError in DataLoader worker process 0.",
    "Original Traceback (most recent call last):",
    "  File \"/usr/lib/python3/dist-packages/torch/utils/data/_utils/fetch.py\", line 58, in fetch",
    "    data = [self.dataset[idx] for idx in possibly_batched_index]",
    "  File \"/home/ada/train.py\", line 5, in __getitem__",
    "    raise KeyError('sample 7 has no label')",
    "KeyError: 'sample 7 has no label'"};

TEST(Clue, OfAnExceptionThatAWorkerProcessPassedOnIsTheOriginalException) {
  for (const Printers printers : {Printers::kOneProcess, Printers::kSeveral}) {
    const auto clue = clue_in(joined({"epoch 1"}, kOfLoader), printers);
    EXPECT_EQ(clue->words, "KeyError: 'sample 7 has no label' (train.py, line 5)");
    EXPECT_EQ(clue->end, kOfLoader.size());
  }
}

TEST(Clue, OfTwoTracebacksOfWhichTheSecondBeginsWithinTheFirstIsAnException) {
  for (const Printers printers : {Printers::kOneProcess, Printers::kSeveral}) {
    const auto clue = clue_in({"Traceback (most recent call last):",
                               "  File \"/home/ada/train.py\", line 25, in <module>", "    f()",
                               "Traceback (most recent call last):",
                               "  File \"/home/ada/train.py\", line 20, in <module>", "    f()",
                               "ValueError: the cause", "    g()", "ValueError: the cause"},
                              printers);
    EXPECT_EQ(clue->words, "ValueError: the cause (train.py, line 20)");
  }
}

TEST(Clue, OfAnExceptionWithSeveralLinesEndsBehindThem) {
  LastLines lines{"Traceback (most recent call last):",
                  "  File \"f.py\", line 3, in f",
                  "RuntimeError: Error(s) in loading state_dict for Net:",
                  "\tMissing key(s): \"a\"",
                  "\tUnexpected key(s): \"b\"",
                  "\tsize mismatch for c",
                  "bye"};
  EXPECT_EQ(clue_in(lines, Printers::kOneProcess)->end, 4U) << "at most three lines";
  lines.erase(lines.begin() + 4, lines.begin() + 6);
  EXPECT_EQ(clue_in(lines, Printers::kOneProcess)->end, 3U);
}

// Printed by Python 3.11.
constexpr std::string_view kGroup = R"(
  + Exception Group Traceback (most recent call last):
  |   File "/home/ada/train.py", line 12, in <module>
  |     load()
  |   File "/home/ada/train.py", line 9, in load
  |     raise ExceptionGroup("two failed", errors)
  | ExceptionGroup: two failed (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/home/ada/train.py", line 3, in read
    |     raise ValueError("bad lr")
    | ValueError: bad lr
    +---------------- 2 ----------------
    | TypeError: x
    +------------------------------------
)";

TEST(Clue, OfAGroupOfExceptionsIsTheMessageOfTheGroup) {
  const std::string of_group = "ExceptionGroup: two failed (2 sub-exceptions) (train.py, line 9)";
  const LastLines group = lines_of(kGroup);
  EXPECT_EQ(clue_in(group, Printers::kOneProcess)->words, of_group);
  EXPECT_EQ(clue_in(group, Printers::kOneProcess)->end, group.size() - 1);

  const LastLines during{"",
                         "During handling of the above exception, another exception occurred:", ""};
  EXPECT_EQ(clue_in(joined(joined(lines_of(kNoModule), during), group), Printers::kSeveral)->words,
            of_group);
  EXPECT_EQ(clue_in(joined(joined(group, during), lines_of(kNoModule)), Printers::kSeveral)->words,
            "ModuleNotFoundError: No module named 'nosuchmodule' (train.py, line 4)");
}

TEST(Clue, IsTheFirstErrorOfSeveralProcessesAndTheLastErrorOfOneProcess) {
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
      {"No user exists for uid 54321", "/etc/passwd"},
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
      {"FileNotFoundError: [Errno 2] No such file or directory: '/data/x'", "--volume"},
      {"FileNotFoundError: [Errno 2] No such file or directory: '/artifacts/x'", "--artifacts"},
      {"ls: cannot access /artifacts: No such file or directory", "--artifacts"},
  };
  for (const auto& known : cases) {
    const auto clue = clue_in({"epoch 1", known.line, "bye"}, Printers::kOneProcess);
    ASSERT_TRUE(clue) << known.line;
    EXPECT_NE(clue->advice.find(known.advice), std::string::npos) << known.line;
    EXPECT_EQ(clue->begin, 1U);
  }
}

TEST(Clue, IsNotFoundInOpenMpisWarningsOnABusyMachine) {
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

TEST(Clue, OfAnImageHasARemedyForItsContainer) {
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

/// Lines with the second in which each was printed in front: "12 ValueError: no".
TimedLines timed(const LastLines& printed) {
  TimedLines timed;
  for (const std::string& line : printed) {
    const size_t blank = line.find(' ');
    timed.lines.push_back(line.substr(blank + 1));
    timed.times.emplace_back(std::chrono::seconds(std::stoi(line.substr(0, blank))));
  }
  return timed;
}

const LastLines kNoFile{"1 Traceback (most recent call last):", "1   File \"f.py\", line 3, in f",
                        "2 FileNotFoundError: /data.bin"};
const LastLines kClosed{
    "3 Traceback (most recent call last):", "3   File \"f.py\", line 4, in f",
    "3 RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer"};
const LastLines kReport{
    "7 Traceback (most recent call last):", "7   File \"/usr/bin/torchrun\", line 33, in <module>",
    "7 torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "};

LastLines joined(std::initializer_list<LastLines> parts) {
  LastLines all;
  for (const LastLines& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(ErrorIn, IsTheErrorThatEndedTheProgramAndWhetherAnotherProcessCausedIt) {
  const auto error = [](int second, bool is_consequence) {
    return PrintedError{.time = base::Time(std::chrono::seconds(second)),
                        .is_consequence = is_consequence};
  };
  LastLines again = kNoFile;
  for (std::string& line : again) line.insert(0, "2");
  const struct {
    std::string name;
    LastLines printed;
    Printers printers;
    std::optional<PrintedError> error;
  } cases[] = {
      {"nothing", {"1 epoch 1"}, Printers::kSeveral, {}},
      {"its own error", joined({kNoFile, kReport}), Printers::kSeveral, error(1, false)},
      {"a consequence", joined({kClosed, kReport}), Printers::kSeveral, error(3, true)},
      {"several processes: the cause", joined({kClosed, kNoFile}), Printers::kSeveral,
       error(1, false)},
      {"one process: the last error", joined({kNoFile, kClosed}), Printers::kOneProcess,
       error(3, true)},
      {"the last round", joined({kNoFile, again}), Printers::kSeveral, error(21, false)},
      {"a consequence in the last round",
       joined({kNoFile,
               {"31 Traceback (most recent call last):", "31   File \"f.py\", line 4, in f",
                "31 HorovodInternalError: rank 1 on n1 has left the session"}}),
       Printers::kSeveral, error(31, true)},
      {"an exception that follows from a consequence",
       joined({kClosed,
               {"3 ", "3 The above exception was the direct cause of the following exception:",
                "3 ", "4 Traceback (most recent call last):", "4   File \"f.py\", line 9, in f",
                "4 TrainingFailed: step 3"}}),
       Printers::kOneProcess, error(3, true)},
      {"the second line of a message",
       {"1 Traceback (most recent call last):", "1   File \"f.py\", line 9, in f",
        "1 RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1970",
        "1 ncclRemoteError: A call failed possibly due to a remote process exiting"},
       Printers::kOneProcess,
       error(1, true)},
      {"a line of code is no message",
       {"1 Traceback (most recent call last):", "1   File \"f.py\", line 9, in f",
        "1     raise ValueError('Socket closed')", "1 ValueError: no"},
       Printers::kOneProcess,
       error(1, false)},
      {"without a traceback",
       {"1 epoch 1", "2 terminate called: NCCL communicator was aborted on rank 0"},
       Printers::kSeveral,
       error(2, true)},
      {"of torchrun alone", kReport, Printers::kSeveral, {}},
      {"with the rank before each line",
       {"1 [rank1]: Traceback (most recent call last):", "1 [rank1]:   File \"f.py\", line 9, in f",
        "1 [rank1]: ValueError: no"},
       Printers::kSeveral,
       error(1, false)},
      {"several processes: the next line is another's",
       {"1 Traceback (most recent call last):", "1   File \"f.py\", line 9, in f",
        "1 ValueError: no", "1 [rank0]:[W1130 TCPStore.cpp:106] Connection reset by peer"},
       Printers::kSeveral,
       error(1, false)},
  };
  for (const auto& known : cases) {
    EXPECT_EQ(error_in(timed(known.printed), known.printers), known.error) << known.name;
  }
}

TEST(Clue, OfSeveralProcessesIsNotAConsequenceOfTheCause) {
  const LastLines lines = timed(joined({kClosed, kNoFile})).lines;

  EXPECT_EQ(clue_in(lines, Printers::kSeveral)->words,
            "FileNotFoundError: /data.bin (f.py, line 3)");
  EXPECT_EQ(clue_in(timed(kClosed).lines, Printers::kSeveral)->begin, 0U);
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
}  // namespace muster::control
