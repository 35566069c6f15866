#include "launch/elastic.h"

#include <gtest/gtest.h>

namespace muster::launch {
namespace {

using job::JobSpec;
using job::Kind;
using job::Resize;

/// Runs with one to four workers.
JobSpec elastic(Kind kind, std::vector<std::string> command) {
  return {
      .kind = kind, .command = std::move(command), .workers = 4, .scheduling = {.min_workers = 1}};
}

TEST(ResizesLive, IsWhatTheCommandIsMadeFor) {
  struct Case {
    Kind kind;
    std::vector<std::string> command;
    bool live;
  };
  for (const Case& c : {
           Case{Kind::kTorch, {"torchrun", "train.py"}, true},
           Case{Kind::kTorch, {"/opt/conda/bin/torchrun", "train.py"}, true},
           Case{Kind::kTorch, {"python3", "-m", "torch.distributed.run", "train.py"}, true},
           Case{Kind::kTorch, {"sh", "-c", "cd src && exec torchrun train.py"}, true},
           Case{Kind::kTorch, {"python3", "train.py"}, false},
           Case{Kind::kTorch, {"sh", "/src/torchrun.sh"}, false},
           Case{Kind::kMpi, {"horovodrun", "--min-np", "1", "train"}, false},
           Case{Kind::kMpi,
                {"horovodrun", "--host-discovery-script", "/generated/discover_hosts.sh", "train"},
                true},
           Case{Kind::kMpi, {"horovodrun", "--host-discovery-script=./hosts", "train"}, true},
           Case{Kind::kMpi, {"sh", "-c", "exec ./launch /etc/mpi/discover_hosts.sh"}, true},
           Case{Kind::kMpi, {"mpirun", "train"}, false},
           Case{Kind::kMpi, {"mpirun", "train", "--out", "rediscover_hosts.sh.log"}, false},
           Case{Kind::kGrpc, {"python3", "train.py"}, false},
           Case{Kind::kTorch, {}, false},  // what the image runs, which nobody knows
       }) {
    EXPECT_EQ(resizes_live(elastic(c.kind, c.command)), c.live)
        << (c.command.empty() ? "nothing" : c.command.back());
  }
}

TEST(ResizesLive, LooksAtTheLeadersOwnCommandFirst) {
  JobSpec spec = elastic(Kind::kTorch, {"torchrun", "train.py"});
  spec.leader.command = {"python3", "serve.py"};
  EXPECT_FALSE(resizes_live(spec));

  spec.command = {"python3", "train.py"};
  spec.leader.command = {"torchrun", "train.py"};
  EXPECT_FALSE(resizes_live(spec));
}

TEST(ResizesLive, LooksAtArgumentsThatStandBehindTheCommand) {
  JobSpec spec = elastic(Kind::kMpi, {"horovodrun"});
  spec.arguments = {"--host-discovery-script", "/etc/mpi/discover_hosts.sh"};

  EXPECT_TRUE(resizes_live(spec));
}

TEST(ResizesLive, IsAsTheSpecSaysWhereItSays) {
  JobSpec spec = elastic(Kind::kGrpc, {"digits"});
  spec.scheduling.resize = Resize::kLive;
  EXPECT_TRUE(resizes_live(spec));

  spec = elastic(Kind::kTorch, {"torchrun"});
  spec.scheduling.resize = Resize::kRestart;
  EXPECT_FALSE(resizes_live(spec));
}

TEST(ResizesLive, IsNothingThatAJobOfAFixedNumberOfWorkersDoes) {
  JobSpec spec = elastic(Kind::kTorch, {"torchrun"});
  spec.scheduling.resize = Resize::kLive;
  for (const std::optional<int> least : {std::optional<int>(), std::optional<int>(4)}) {
    spec.scheduling.min_workers = least;
    EXPECT_FALSE(resizes_live(spec));
  }
}

}  // namespace
}  // namespace muster::launch
