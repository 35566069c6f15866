// The life of containers, by calls of the client to a real engine: see test_real_engine.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "engine/container/test_real_engine.h"

namespace muster::engine {
namespace {

using base::ErrorCode;

std::string actions_of(const std::vector<DockerEvent>& events) {
  std::string actions;
  for (const DockerEvent& event : events) actions += event.action + " ";
  return actions;
}

TEST_F(DockerClientPodman, InfoDescribesTheEngineAndItsHost) {
  const DockerInfo found = info();

  EXPECT_TRUE(found.api_version.starts_with("1.4") || found.api_version.starts_with("1.5"))
      << found.api_version;
  EXPECT_FALSE(found.version.empty());
  EXPECT_EQ(found.os, "linux");
  EXPECT_TRUE(found.architecture == "amd64" || found.architecture == "arm64") << found.architecture;
  EXPECT_FALSE(found.host_name.empty());
  EXPECT_GT(found.cpus, 0);
  EXPECT_GT(found.memory_bytes, 100 << 20);
}

TEST_F(DockerClientPodman, AContainerRunsAndAllOfItsOutputIsReceived) {
  RecordedStream recorded;
  const std::string id = create(config("whole", {"/program", "print", "to out\n", "to err\n"}));
  ASSERT_TRUE(attach(id, recorded));
  const auto before = inspect(id);
  ASSERT_TRUE(before) << before.error().to_string();
  EXPECT_EQ(before->state, "created");
  EXPECT_FALSE(before->finished);

  ASSERT_TRUE(start(id));
  ASSERT_TRUE(loop_.run_until([&] { return recorded.ended; }));

  EXPECT_EQ(recorded.output, "to out\n");
  EXPECT_EQ(recorded.error, "to err\n");
  const auto after = state_at_end(id);
  ASSERT_TRUE(after) << after.error().to_string();
  EXPECT_EQ(after->id, id);
  EXPECT_EQ(after->name, "muster-client-test-whole");
  EXPECT_EQ(after->state, "exited");
  EXPECT_EQ(after->exit_code, 0);
  EXPECT_TRUE(after->finished);
  EXPECT_EQ(after->labels.at("other"), "a=b");
}

TEST_F(DockerClientPodman, TwentyMegabytesArriveUnchanged) {
  ContainerConfig settings = config("cat", {"/program", "cat"});
  settings.open_input = true;
  RecordedStream recorded;
  const std::string id = create(settings);
  ASSERT_TRUE(attach(id, recorded));
  ASSERT_TRUE(start(id));
  const std::string bytes = bytes_of(20 << 20);

  recorded.stream->write(bytes);
  recorded.stream->close_input();

  ASSERT_TRUE(loop_.run_until([&] { return recorded.ended; }));
  EXPECT_TRUE(recorded.output == bytes) << recorded.output.size() << " bytes came back";
  EXPECT_EQ(recorded.stream->waiting(), 0U);
}

TEST_F(DockerClientPodman, OutputWaitsForASlowReader) {
  ContainerConfig settings = config("pause", {"/program", "cat"});
  settings.open_input = true;
  RecordedStream recorded;
  const std::string id = create(settings);
  ASSERT_TRUE(attach(id, recorded));
  ASSERT_TRUE(start(id));
  recorded.stream->write("first");
  ASSERT_TRUE(loop_.run_until([&] { return recorded.output == "first"; }));

  recorded.stream->pause(true);
  const std::string bytes = bytes_of(16 << 20);
  recorded.stream->write(bytes);
  recorded.stream->close_input();
  ASSERT_TRUE(inspect(id));  // lets the loop run
  EXPECT_EQ(recorded.output, "first");
  EXPECT_GT(recorded.stream->waiting(), 0U);

  recorded.stream->pause(false);
  ASSERT_TRUE(loop_.run_until([&] { return recorded.ended; }));
  EXPECT_EQ(recorded.output.size(), bytes.size() + 5);
}

TEST_F(DockerClientPodman, AttachingToAnEndedContainerFails) {
  const ContainerConfig settings = config("ended", {"/program", "exit", "3"});
  run(settings);
  RecordedStream recorded;

  const auto attached = attach(settings.name, recorded);

  ASSERT_FALSE(attached);
  EXPECT_EQ(attached.error().code, ErrorCode::kConflict);
  const auto state = inspect(settings.name);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->state, "exited");
  EXPECT_EQ(state->exit_code, 3);
}

TEST_F(DockerClientPodman, ANameCanBeUsedOnce) {
  const ContainerConfig settings = config("twice", {"/program", "wait"});
  create(settings);

  const auto again =
      loop_.answer<std::string>([&](auto then) { client_.create(settings, std::move(then)); });

  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kConflict) << again.error().to_string();
}

TEST_F(DockerClientPodman, CreatingAContainerOfAMissingImageFails) {
  ContainerConfig settings = config("no-image", {"/program"});
  settings.image = "nowhere/nothing:1";

  const auto made =
      loop_.answer<std::string>([&](auto then) { client_.create(settings, std::move(then)); });

  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kNotFound) << made.error().to_string();
}

TEST_F(DockerClientPodman, StartingAMissingProgramFails) {
  const std::string id = create(config("no-program", {"/nothing"}));

  const auto started = start(id);

  ASSERT_FALSE(started);
  EXPECT_NE(started.error().what.find("/nothing"), std::string::npos) << started.error().what;
}

TEST_F(DockerClientPodman, StartingARunningContainerSucceeds) {
  const std::string id = start_waiting("started-twice");
  EXPECT_TRUE(start(id));
}

TEST_F(DockerClientPodman, SignalsReachOnlyRunningContainers) {
  const std::string id = start_waiting("signal");
  RecordedStream recorded;
  ASSERT_TRUE(attach(id, recorded));

  EXPECT_TRUE(done([&](auto then) { client_.kill(id, "TERM", then); }));
  ASSERT_TRUE(loop_.run_until([&] { return recorded.ended; }));
  const auto state = state_at_end(id);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->exit_code, 15);

  const auto again = done([&](auto then) { client_.kill(id, "TERM", then); });
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kConflict) << again.error().to_string();
}

TEST_F(DockerClientPodman, RemovingAMissingContainerSucceeds) {
  const std::string id = start_waiting("removed");

  EXPECT_TRUE(remove(id));

  EXPECT_TRUE(remove(id));
  const auto state = inspect(id);
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code, ErrorCode::kNotFound);
  const auto started = start(id);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kNotFound);
}

TEST_F(DockerClientPodman, ContainersAreFoundByTheirLabels) {
  const std::string id = create(config("listed", {"/program", "wait"}));
  ContainerConfig other = config("other", {"/program", "wait"});
  other.labels = {{kLabel, "2"}};
  const std::string other_id = create(other);

  const auto found = list();
  EXPECT_TRUE(remove(other_id));

  ASSERT_TRUE(found) << found.error().to_string();
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().id, id);
  EXPECT_EQ(found->front().name, "muster-client-test-listed");
  EXPECT_EQ(found->front().state, "created");
  EXPECT_EQ(found->front().labels.at(kLabel), "1");
}

TEST_F(DockerClientPodman, EventsArriveAsTheyHappen) {
  std::vector<DockerEvent> events;
  std::optional<base::Error> broken;
  bool open = false;
  auto subscription = client_.events(
      kFilter,
      [&](const DockerEvent& event) {
        events.push_back(event);
        loop_.look();
      },
      [&](base::Error error) {
        broken = std::move(error);
        loop_.look();
      },
      [&] {
        open = true;
        loop_.look();
      });
  ASSERT_TRUE(loop_.run_until([&] { return open || broken; }));
  ASSERT_FALSE(broken) << broken->to_string();

  const ContainerConfig settings = config("event", {"/program", "exit", "7"});
  const std::string id = create(settings);
  ASSERT_TRUE(start(id));
  // Events of the current second include those of earlier tests.
  const auto is_end = [&](const DockerEvent& event) {
    return event.action == "die" && event.id == id;
  };
  ASSERT_TRUE(loop_.run_until([&] {
    return std::any_of(events.begin(), events.end(), is_end) || broken.has_value();
  })) << "events: "
      << actions_of(events);

  const auto end = std::find_if(events.begin(), events.end(), is_end);
  ASSERT_NE(end, events.end());
  EXPECT_EQ(end->attributes.at("exitCode"), "7");
  EXPECT_EQ(end->attributes.at(kLabel), "1");
  EXPECT_TRUE(remove(id));
  const auto is_gone = [&](const DockerEvent& event) {
    return event.action == "destroy" && event.id == id;
  };
  EXPECT_TRUE(loop_.run_until([&] { return std::any_of(events.begin(), events.end(), is_gone); }));
  EXPECT_FALSE(broken);
}

}  // namespace
}  // namespace muster::engine
