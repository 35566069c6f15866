#include "engine/shim/ranks.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/test_folder.h"
#include "engine/shim/channels.h"

namespace muster::engine {

namespace {

using job::LogStream;

// --- tags in the output of a launcher

/// The bytes of each source. The key is the rank, or "-", and 'o' or 'e' for the stream.
std::map<std::string, std::string> sources_of(const std::vector<std::string>& pieces,
                                              bool bare = false) {
  std::map<std::string, std::string> printed;
  const auto keep = [&](std::optional<int> rank, LogStream stream, std::string_view bytes) {
    EXPECT_FALSE(bytes.empty());
    const std::string name =
        (rank ? std::to_string(*rank) : "-") + (stream == LogStream::kOutput ? "o" : "e");
    printed[name] += bytes;
  };
  RankTags tags(LogStream::kOutput, bare);
  for (const std::string& piece : pieces) tags.add(piece, keep);
  tags.finish(keep);
  return printed;
}

using Sources = std::map<std::string, std::string>;

// Output of Open MPI 4.1.4 with --tag-output: of its ranks and of mpirun itself.
constexpr const char* kOpenMpi =
    "[1,0]<stdout>:hi\n[1,0]<stdout>:part[1,0]<stderr>:err\n[1,1]<stdout>:hi\n"
    "[1,1]<stderr>:err\n[1,1]<stdout>:part";
const Sources kOfOpenMpi{{"0o", "hi\npart"}, {"0e", "err\n"}, {"1o", "hi\npart"}, {"1e", "err\n"}};

TEST(RankTags, OfOpenMpiAssignBytesToRanksAndStreams) {
  EXPECT_EQ(sources_of({kOpenMpi}), kOfOpenMpi);
}

TEST(RankTags, MayBeCutAnywhere) {
  const std::string text = kOpenMpi;
  for (size_t cut = 1; cut < text.size(); ++cut) {
    EXPECT_EQ(sources_of({text.substr(0, cut), text.substr(cut)}), kOfOpenMpi) << cut;
  }
  std::vector<std::string> letters;
  for (const char letter : text) letters.emplace_back(1, letter);
  EXPECT_EQ(sources_of(letters), kOfOpenMpi);
}

TEST(RankTags, TheBlankAfterATagOfOpenMpi5IsRemoved) {
  EXPECT_EQ(sources_of({"[1,0]<stdout>: a\n[1,0]<stdout>:   b\n"}), (Sources{{"0o", "a\n  b\n"}}));
  EXPECT_EQ(sources_of({"[prterun-n1-4711@1,12]<stderr>: a\n"}), (Sources{{"12e", "a\n"}}));
}

TEST(RankTags, WithoutABlankTheIndentationStays) {
  EXPECT_EQ(sources_of({"[1,0]<stderr>:Traceback\n[1,0]<stderr>:  File \"x\"\n"}),
            (Sources{{"0e", "Traceback\n  File \"x\"\n"}}));
}

TEST(RankTags, OfHorovodrunAreRecognised) {
  EXPECT_EQ(sources_of({"[2]<stderr>:RuntimeError\nProcess 2 exit with status code 1.\n"}),
            (Sources{{"2e", "RuntimeError\n"}, {"-o", "Process 2 exit with status code 1.\n"}}));
}

TEST(RankTags, OfMpichCountOnlyIfTheLauncherHasTheFlag) {
  // Output of MPICH 4.0.2 with -l.
  const std::string printed = "[0] hi\n[0] part[1] hi\nexecvp failed\n[1] [3] own\n";
  EXPECT_EQ(sources_of({printed}), (Sources{{"-o", printed}}));
  EXPECT_EQ(sources_of({printed}, true),
            (Sources{{"0o", "hi\npart[1] hi\n"}, {"-o", "execvp failed\n"}, {"1o", "[3] own\n"}}));
}

TEST(RankTags, OtherOutputIsUnchanged) {
  for (const std::string text :
       {"[1,0] loss\n", "[INFO]<stdout>:x\n", "[]<stdout>:x\n", "[1,2", "[1,2]<std",
        "[1]<stdout>:", " [1,0]<stdout>:x\n", "see [1,0]<stdout>:x\n", "[99999999999]<stdout>:x\n",
        "\n\n[\n", "[-1]<stdout>:x\n", "a\nb\nno newline"}) {
    EXPECT_EQ(sources_of({text}), (Sources{{"-o", text}}));
    EXPECT_EQ(sources_of({text.substr(0, 2), text.substr(2)}), (Sources{{"-o", text}})) << text;
  }
}

TEST(RankTags, ALongBracketIsNotHeldBack) {
  std::string seen;
  RankTags tags(LogStream::kOutput, false);
  const std::string text = "[" + std::string(200, '1');

  tags.add(text, [&](std::optional<int>, LogStream, std::string_view bytes) { seen += bytes; });

  EXPECT_EQ(seen, text);
}

// --- census

using namespace std::chrono_literals;

std::string environment_of(const std::vector<std::string>& entries) {
  std::string text;
  for (const std::string& entry : entries) text += entry + '\0';
  return text;
}

TEST(RankOfEnvironment, IsReadFromPmiVariables) {
  EXPECT_EQ(rank_of_environment(environment_of({"A=1", "PMI_SIZE=4", "PMI_RANK=3", "B=2"})),
            (SignedRank{3, 4}));
}

TEST(RankOfEnvironment, NeedsRankAndSize) {
  for (const auto& entries : std::vector<std::vector<std::string>>{{},
                                                                   {"PMI_RANK=0"},
                                                                   {"PMI_SIZE=4"},
                                                                   {"PMI_RANK=4", "PMI_SIZE=4"},
                                                                   {"PMI_RANK=-1", "PMI_SIZE=4"},
                                                                   {"PMI_RANK=x", "PMI_SIZE=4"},
                                                                   {"XPMI_RANK=0", "PMI_SIZE=4"}}) {
    EXPECT_EQ(rank_of_environment(environment_of(entries)), std::nullopt);
  }
}

/// A folder that replaces /proc.
class FakeRankProcesses {
 public:
  explicit FakeRankProcesses(bool lists_children) : lists_children_(lists_children) {}

  void add(pid_t pid, pid_t parent, const std::string& name,
           const std::vector<std::string>& environment = {}) {
    const auto process = folder_ / std::to_string(pid);
    std::filesystem::create_directories(process / "task" / std::to_string(pid));
    // The fields of proc(5) up to 24: PID (NAME) STATE PARENT ...
    std::string stat = std::to_string(pid) + " (" + name + ") S " + std::to_string(parent);
    for (int field = 5; field <= 24; ++field) stat += field == 20 ? " 1" : " 0";
    EXPECT_TRUE(base::write_file(process / "stat", stat + "\n"));
    EXPECT_TRUE(base::write_file(process / "environ", environment_of(environment)));
    children_[parent] += std::to_string(pid) + " ";
    if (!lists_children_) return;
    for (const pid_t changed : {parent, pid}) {
      const std::string number = std::to_string(changed);
      std::filesystem::create_directories(folder_ / number / "task" / number);
      EXPECT_TRUE(
          base::write_file(folder_ / number / "task" / number / "children", children_[changed]));
    }
  }

  /// Sets the system call that a process is in, its only socket, and the unread bytes of the
  /// socket.
  void hold(pid_t pid, const std::string& call, const std::string& unread) {
    const auto process = folder_ / std::to_string(pid);
    std::filesystem::create_directories(process / "fd");
    std::filesystem::create_directories(process / "net");
    std::filesystem::create_symlink("socket:[4711]", process / "fd" / "7");
    EXPECT_TRUE(base::write_file(process / "syscall", call + " 0x7ffc 0x3ff 0x0 0x7ffc 0x7f\n"));
    EXPECT_TRUE(base::write_file(
        process / "net" / "tcp",
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
        "   0: 0100007F:D6D7 0100007F:C0A6 01 00000000:00000400 00:00000000 00000000 0 0 9 1\n"
        "   1: 0100007F:D6D7 0100007F:C0A6 01 00000000:" +
            unread + " 00:00000000 00000000     0        0 4711 1 0000000000000000\n"));
  }

  std::vector<pid_t> hanging_below(pid_t root) const {
    return engine::hanging_below(root, folder_);
  }

  std::vector<SignedRank> ranks_below(pid_t root) const {
    auto ranks = engine::ranks_below(root, folder_);
    std::sort(ranks.begin(), ranks.end(),
              [](const SignedRank& a, const SignedRank& b) { return a.rank < b.rank; });
    return ranks;
  }

 private:
  bool lists_children_;
  base::TestFolder folder_;
  std::map<pid_t, std::string> children_;
};

class RanksBelow : public testing::TestWithParam<bool> {};

TEST_P(RanksBelow, AreTheChildrenOfProxies) {
  FakeRankProcesses proc(GetParam());
  proc.add(10, 1, "sshd");
  proc.add(11, 10, "sh (x) y");
  proc.add(12, 11, "hydra_pmi_proxy");
  proc.add(13, 12, "python3", {"PMI_RANK=1", "PMI_SIZE=3"});
  proc.add(14, 12, "python3", {"PMI_RANK=2", "PMI_SIZE=3"});
  proc.add(20, 1, "hydra_bstrap_pr");
  proc.add(21, 20, "hydra_pmi_proxy", {"PMI_RANK=9", "PMI_SIZE=10"});
  proc.add(22, 21, "train", {"PMI_RANK=0", "PMI_SIZE=3"});

  EXPECT_EQ(proc.ranks_below(1), (std::vector<SignedRank>{{0, 3}, {1, 3}, {2, 3}}));
}

TEST_P(RanksBelow, ChildrenOfRanksAreNotRanks) {
  FakeRankProcesses proc(GetParam());
  proc.add(12, 1, "hydra_pmi_proxy");
  proc.add(13, 12, "sh", {"PMI_RANK=0", "PMI_SIZE=2"});
  proc.add(14, 13, "loader", {"PMI_RANK=1", "PMI_SIZE=2"});

  EXPECT_EQ(proc.ranks_below(1), (std::vector<SignedRank>{{0, 2}}));
}

TEST_P(RanksBelow, OnlyDescendantsCount) {
  FakeRankProcesses proc(GetParam());
  proc.add(5, 1, "inner");
  proc.add(6, 1, "hydra_pmi_proxy");
  proc.add(7, 6, "sh", {"PMI_RANK=0", "PMI_SIZE=1"});
  proc.add(8, 5, "sh", {"PMI_RANK=0", "PMI_SIZE=1"});

  EXPECT_EQ(proc.ranks_below(5), std::vector<SignedRank>());
}

TEST_P(RanksBelow, HangWhileTheyReadFromPmiWithAnUnreadQuestion) {
  FakeRankProcesses proc(GetParam());
  proc.add(12, 1, "hydra_pmi_proxy");
  const auto add_rank = [&](pid_t pid, const std::string& call, const std::string& unread) {
    proc.add(pid, 12, "train", {"PMI_FD=6", "PMI_RANK=0", "PMI_SIZE=4"});
    proc.hold(pid, call, unread);
  };
  const std::string reads = std::to_string(SYS_read);
  add_rank(13, reads + " 0x6", "00000019");
  add_rank(14, reads + " 0x6", "00000009");  // a farewell of another rank is unread
  add_rank(15, reads + " 0x6", "00000000");
  add_rank(16, reads + " 0x8", "00000019");  // reads another descriptor
  add_rank(17, "running", "00000019");
  proc.add(18, 12, "train", {"PMI_RANK=0", "PMI_SIZE=4"});
  proc.hold(18, reads + " 0x6", "00000019");

  EXPECT_EQ(proc.hanging_below(1), std::vector<pid_t>{13});
}

INSTANTIATE_TEST_SUITE_P(Kernels, RanksBelow, testing::Bool(), [](const auto& kernel) {
  return kernel.param ? "ThatListChildren" : "ThatDoNot";
});

TEST(PauseAfter, GrowsWithTheTimeSinceTheLastStart) {
  EXPECT_EQ(pause_after(0ms, 0us), 5ms);
  EXPECT_EQ(pause_after(1s, 0us), 100ms);
  EXPECT_EQ(pause_after(1h, 0us), 2s);
}

TEST(PauseAfter, GrowsWithTheCostOfALook) {
  EXPECT_EQ(pause_after(0ms, 100ms), 5s);
}

TEST(RankWatch, SignsInTheRanksOfARealProxy) {
  const base::TestFolder folder;
  // The kernel names a process after its file.
  std::filesystem::copy_file("/bin/sh", folder / "hydra_pmi_proxy");
  ASSERT_EQ(::chmod((folder / "hydra_pmi_proxy").c_str(), 0700), 0);
  auto up = make_output_pipe();
  auto down = make_input_pipe();
  ASSERT_TRUE(up && down);
  const auto proxy = base::spawn({.argv = {(folder / "hydra_pmi_proxy").string(), "-c",
                                           "PMI_RANK=1 PMI_SIZE=2 sh -c 'echo up; read x'; exit 0"},
                                  .environment = base::current_environment(),
                                  .descriptors = {{down->there.get(), 0}, {up->there.get(), 1}}});
  ASSERT_TRUE(proxy);
  std::array<char, 3> word{};
  pollfd watched{up->here.get(), POLLIN, 0};
  ASSERT_GT(::poll(&watched, 1, 60'000), 0);
  ASSERT_EQ(::read(up->here.get(), word.data(), word.size()), 3);

  RankWatch watch(folder.path());
  EXPECT_FALSE(watch.due());
  watch.started(RankWatch::Steady::now());
  watch.look();

  EXPECT_EQ(rank_in(folder, "1"), (SignedRank{1, 2}));
  EXPECT_TRUE(watch.due());
  down->here.reset();
  EXPECT_TRUE(base::wait_for(*proxy));
}

}  // namespace

}  // namespace muster::engine
