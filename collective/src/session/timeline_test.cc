#include "session/timeline.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "session/session_world.h"

namespace muster::collective::session {
namespace {

class Folder {
 public:
  Folder() : path_(::testing::TempDir() + "timeline-" + std::to_string(::getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(TimelineTest, ShowsEveryOperationWithItsPhases) {
  const Folder folder;
  const std::string strange = "w\"\\\n\xff";
  with_sessions(2, Over::kSharedMemory,
                [&](Session& session) {
                  std::vector<float> values(100, 1);
                  for (int step = 0; step < 3; ++step) {
                    for (const std::string& name : {std::string("w1"), strange}) {
                      const auto ticket =
                          session.all_reduce(name, values.data(), values.data(), 100,
                                             DataType::kFloat32, ReduceOp::kMax);
                      ASSERT_TRUE(ticket);
                      EXPECT_TRUE(session.wait(*ticket));
                    }
                  }
                },
                {.timeline = folder.file("rank%r.json")});
  for (const int rank : {0, 1}) {
    const auto events =
        nlohmann::json::parse(text_of(folder.file("rank" + std::to_string(rank) + ".json")));
    std::map<std::string, int> phases;
    std::set<std::string> lanes;
    for (const auto& event : events) {
      EXPECT_EQ(event.at("pid"), rank);
      if (event.at("ph") == "M") {
        if (event.at("name") == "process_name") {
          EXPECT_GT(event.at("args").at("start_time_since_epoch_in_micros").get<double>(), 0);
        }
        lanes.insert(event.at("args").at("name").get<std::string>());
        continue;
      }
      ++phases[event.at("name").get<std::string>()];
      EXPECT_GE(event.at("dur").get<double>(), 0);
      if (event.at("name") == "ALLREDUCE") {
        EXPECT_EQ(event.at("args").at("bytes"), 400);
        EXPECT_EQ(event.at("args").at("failed"), false);
      }
      if (event.at("name") == "EXECUTE") {
        EXPECT_GT(event.at("args").at("call"), 0);
      }
      if (event.at("name") == "NEGOTIATE_ALLREDUCE") {
        EXPECT_LT(event.at("args").at("last_rank").get<int>(), 2);
      }
    }
    EXPECT_EQ(phases,
              (std::map<std::string, int>{
                  {"NEGOTIATE_ALLREDUCE", 6}, {"ALLREDUCE", 6}, {"QUEUE", 6}, {"EXECUTE", 6}}));
    EXPECT_TRUE(lanes.contains("w1"));
    EXPECT_TRUE(
        lanes.contains("rank " + std::to_string(rank) + " on host host-" + std::to_string(rank)));
  }
}

TEST(TimelineTest, OfAKilledProcessLacksOnlyItsLastBracket) {
  const Folder folder;
  const std::string path = folder.file("killed.json");
  const pid_t child = ::fork();
  if (child == 0) {
    auto timeline = Timeline::open(path, 3, "a");
    if (!timeline) ::_exit(1);
    for (int i = 0; i < 200; ++i) {
      (*timeline)->add({.name = "w" + std::to_string(i), .operation = "all_reduce", .call = 1});
    }
    while (!text_of(path).ends_with("}}") || text_of(path).find("w199") == std::string::npos) {
      std::this_thread::yield();
    }
    ::raise(SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  const std::string text = text_of(path);
  EXPECT_FALSE(nlohmann::json::accept(text));
  EXPECT_TRUE(nlohmann::json::accept(text + "]"));
}

// The thread that writes the timeline does not exist in the child.
TEST(TimelineTest, OfAWorldOfOneIsLeftAloneByAForkedProcess) {
  const Folder folder;
  testing::spawn_worlds(1, testing::Placement::one_host(), [&](World& world) {
    SoloBackend backend;
    const auto owner = std::make_shared<int>();
    SessionBase base{.world = world, .backend = &backend};
    base.owner = owner;
    Result<Session> session =
        start_session(std::move(base), {.timeline = folder.file("forked.json")});
    ASSERT_TRUE(session) << session.error().to_string();
    const auto references = owner.use_count();
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);  // ends a child that hangs
      {
        const Session own(*std::move(session));
      }
      ::_exit(owner.use_count() == references ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(session->wait(*session->barrier("b")));
    EXPECT_TRUE(session->stop_timeline());
    EXPECT_TRUE(nlohmann::json::accept(text_of(folder.file("forked.json"))));
  });
}

TEST(TimelineTest, StartsAndStopsOnRequest) {
  const Folder folder;
  with_sessions(1, Over::kSharedMemory, [&](Session& session) {
    EXPECT_TRUE(session.stop_timeline());
    EXPECT_FALSE(session.start_timeline(folder.file("no/such/folder")));
    ASSERT_TRUE(session.start_timeline(folder.file("t.json")));
    EXPECT_TRUE(session.wait(*session.barrier("b")));
    EXPECT_TRUE(session.stop_timeline());
    EXPECT_TRUE(session.wait(*session.barrier("unseen")));
    const std::string text = text_of(folder.file("t.json"));
    EXPECT_TRUE(nlohmann::json::accept(text));
    EXPECT_EQ(text.find("unseen"), std::string::npos);
    EXPECT_NE(text.find("NEGOTIATE_BARRIER"), std::string::npos);
    EXPECT_EQ(text.find("CYCLE_START"), std::string::npos);
  });
}

TEST(TimelineTest, MarksWhereOperationsBeginTogetherOnRequest) {
  const Folder folder;
  with_sessions(1, Over::kSharedMemory, [&](Session& session) {
    session.mark_cycles(true);
    ASSERT_TRUE(session.start_timeline(folder.file("t.json")));
    EXPECT_TRUE(session.wait(*session.barrier("b")));
    EXPECT_TRUE(session.stop_timeline());
    const auto events = nlohmann::json::parse(text_of(folder.file("t.json")));
    EXPECT_TRUE(std::ranges::any_of(events, [](const auto& event) {
      return event.at("ph") == "i" && event.at("name") == "CYCLE_START";
    }));
  });
}

TEST(TimelineTest, ANewTimelineEndsThePreviousOne) {
  const Folder folder;
  with_sessions(1, Over::kSharedMemory, [&](Session& session) {
    ASSERT_TRUE(session.start_timeline(folder.file("first.json")));
    EXPECT_TRUE(session.wait(*session.barrier("a")));
    ASSERT_TRUE(session.start_timeline(folder.file("second.json")));
    EXPECT_TRUE(session.wait(*session.barrier("b")));
    EXPECT_TRUE(session.stop_timeline());
    const std::string first = text_of(folder.file("first.json"));
    EXPECT_TRUE(nlohmann::json::accept(first));
    EXPECT_NE(first.find(R"("a")"), std::string::npos);
    EXPECT_EQ(first.find(R"("b")"), std::string::npos);
    EXPECT_NE(text_of(folder.file("second.json")).find(R"("b")"), std::string::npos);
  });
}

}  // namespace
}  // namespace muster::collective::session
