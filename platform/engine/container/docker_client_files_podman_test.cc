// Copying files into containers of a real engine, and out of them: see test_real_engine.h.
#include <gtest/gtest.h>

#include "engine/container/test_real_engine.h"

namespace muster::engine {
namespace {

using base::ErrorCode;
using workspace::ArchiveEntry;

TEST_F(DockerClientPodman, FilesCanBeCopiedIntoAContainerThatHasNotStarted) {
  ContainerConfig settings = config("files", {"/muster/bin/program", "stat", "/muster/task/plan"});
  settings.user = "1000:1000";
  settings.read_only_root = true;
  settings.mounts = {{.source = "", .target = "/muster"}};
  const std::string id = create(settings);
  ASSERT_TRUE(put(id, "/muster",
                  {folder("bin", 0755), file("bin/program", content_of(MUSTER_TEST_PROGRAM), 0755),
                   folder("task", 0700, 1000), file("task/plan", "secret", 0600, 1000)}));
  RecordedStream recorded;
  ASSERT_TRUE(attach(id, recorded));

  ASSERT_TRUE(start(id));

  ASSERT_TRUE(loop_.run_until([&] { return recorded.ended; }));
  EXPECT_EQ(recorded.output, "0600 1000:1000 f");
}

TEST_F(DockerClientPodman, ALargeTarIsCopiedInPieces) {
  const std::string id = start_waiting("pieces");
  const std::string content = bytes_of(12 << 20);
  const std::string tar = workspace::make_archive({file("large", content, 0644)});
  size_t sent = 0;

  ASSERT_TRUE(done([&](auto then) {
    client_.put_archive(
        id, "/data",
        [&]() -> Result<std::string> {
          std::string piece = tar.substr(sent, 100'000);
          sent += piece.size();
          return piece;
        },
        then);
  }));
  std::string back;
  size_t pieces = 0;
  std::shared_ptr<void> fetch;
  ASSERT_TRUE(done([&](auto then) {
    fetch = client_.get_archive(
        id, "/data/large",
        [&](std::string_view piece) {
          back += piece;
          ++pieces;
        },
        then);
  }));

  EXPECT_GT(pieces, 10U);
  const auto entries = workspace::read_archive(back, content.size());
  ASSERT_TRUE(entries) << entries.error().to_string();
  ASSERT_EQ(entries->size(), 1U);
  EXPECT_EQ(entries->front().path, "large");
  EXPECT_TRUE(entries->front().content == content);
}

TEST_F(DockerClientPodman, AFailedUploadHasTheReasonOfItsSource) {
  const std::string id = start_waiting("source");

  const auto put = done([&](auto then) {
    client_.put_archive(
        id, "/data",
        []() -> Result<std::string> {
          return base::Error{.code = ErrorCode::kExhausted, .what = "the source is broken"};
        },
        then);
  });

  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().what, "the source is broken");
}

TEST_F(DockerClientPodman, PathsAreInspected) {
  const std::string id = start_waiting("stat");
  ArchiveEntry link = file("link", "", 0777);
  link.link = "/data/plain";
  ASSERT_TRUE(put(id, "/data", {file("plain", "12345", 0640), folder("folder", 01777), link}));

  const auto plain = stat(id, "/data/plain");
  ASSERT_TRUE(plain) << plain.error().to_string();
  EXPECT_EQ(plain->name, "plain");
  EXPECT_EQ(plain->size, 5);
  EXPECT_EQ(plain->mode, 0640U);
  EXPECT_FALSE(plain->is_folder);
  const auto inner = stat(id, "/data/folder");
  ASSERT_TRUE(inner) << inner.error().to_string();
  EXPECT_TRUE(inner->is_folder);
  EXPECT_EQ(inner->mode, 01777U);
  const auto linked = stat(id, "/data/link");
  ASSERT_TRUE(linked) << linked.error().to_string();
  EXPECT_EQ(linked->link, "/data/plain");

  const auto missing = stat(id, "/data/no such\xe2\x82\xac&x=y");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound) << missing.error().to_string();
  std::shared_ptr<void> fetch;
  const auto fetched = done(
      [&](auto then) { fetch = client_.get_archive(id, "/nothing", [](auto) { FAIL(); }, then); });
  ASSERT_FALSE(fetched);
  EXPECT_EQ(fetched.error().code, ErrorCode::kNotFound) << fetched.error().to_string();
}

}  // namespace
}  // namespace muster::engine
