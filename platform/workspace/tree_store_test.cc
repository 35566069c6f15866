#include "workspace/tree_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <future>
#include <thread>

#include "base/files.h"
#include "base/test_folder.h"
#include "workspace/scan.h"

namespace muster::workspace {

namespace fs = std::filesystem;

namespace {

using base::ErrorCode;
using namespace std::string_literals;

constexpr int64_t kMebi = 1 << 20;

class Trees : public testing::Test {
 protected:
  fs::path plant(const std::string& path, const std::string& content) const {
    fs::create_directories((source_ / path).parent_path());
    std::ofstream(source_ / path, std::ios::binary) << content;
    return source_ / path;
  }

  /// Acts like a client: sends the missing chunks, then the tree.
  Result<TreeInfo> send(const std::string& project) {
    MUSTER_TRY(const Scan scan, scan_folder(source_, {}));
    for (const ChunkSource& chunk : scan.chunks) {
      MUSTER_TRY(const std::string content, read_chunk(chunk));
      MUSTER_CHECK(store_.put_chunk(project, content));
    }
    return keep(project, scan.encoded);
  }

  std::string encoded_source() const { return scan_folder(source_, {})->encoded; }

  Result<TreeInfo> keep(const std::string& project, const std::string& encoded) {
    std::vector<ChunkId> chunks;
    for (const std::string_view piece : cut_into_chunks(encoded)) {
      MUSTER_TRY(ChunkId id, store_.put_chunk(project, piece));
      chunks.push_back(std::move(id));
    }
    return store_.keep(project, tree_id(encoded), chunks);
  }

  fs::path chunk_file(const ChunkId& id, const std::string& project = "team") const {
    return folder_ / project / "chunks" / id.substr(0, 2) / id;
  }

  fs::path tree_file(const std::string& id) const { return folder_ / "team/trees" / id; }

  fs::path empty_folder(const std::string& name) const {
    fs::create_directory(work_ / name);
    return work_ / name;
  }

  /// Makes a file look as if it was last used this long ago.
  static void age(const fs::path& file, std::chrono::seconds age) {
    fs::last_write_time(file, fs::file_time_type::clock::now() - age);
  }

  void age_everything() const {
    for (const auto& item : fs::recursive_directory_iterator(folder_)) {
      if (item.is_regular_file()) age(item.path(), std::chrono::hours(48));
    }
  }

  size_t files_kept() const {
    size_t count = 0;
    for (const auto& item : fs::recursive_directory_iterator(folder_)) {
      count += item.is_regular_file() && item.path().filename() != ".lock" ? 1 : 0;
    }
    return count;
  }

  const base::Time yesterday_ = base::SystemClock().now() - std::chrono::hours(24);
  const base::TestFolder work_;
  const fs::path source_ = empty_folder("source");
  const fs::path folder_ = work_ / "state/trees";
  TreeStore store_{folder_};
};

TEST_F(Trees, ReadBackUnchanged) {
  plant("run.sh", "#!/bin/sh\n");
  fs::permissions(source_ / "run.sh", fs::perms::owner_exec, fs::perm_options::add);
  plant("deep/er/two\nlines", std::string(2 * kMebi + 5, 'x'));
  plant("deep/none", "");
  fs::create_directory(source_ / "empty");
  fs::create_symlink("deep/none", source_ / "link");
  const auto sent = send("team");
  ASSERT_TRUE(sent) << sent.error().to_string();
  const fs::path target = empty_folder("target");

  const auto unpacked = store_.unpack("team", sent->id, target);

  ASSERT_TRUE(unpacked) << unpacked.error().to_string();
  EXPECT_EQ(scan_folder(target, {})->id, sent->id);
  EXPECT_EQ(sent->bytes, 2 * kMebi + 15);
  EXPECT_EQ(sent->files, 3U);
  EXPECT_EQ(*store_.info("team", sent->id), *sent);
  EXPECT_EQ(fs::status(target / "run.sh").permissions(), fs::perms(0755));
  EXPECT_EQ(fs::status(target / "deep/none").permissions(), fs::perms(0644));
  EXPECT_EQ(fs::status(target / "deep").permissions(), fs::perms(0755));
}

TEST_F(Trees, ArePrivateToTheServersUser) {
  plant("a", "x");
  ASSERT_TRUE(send("team"));

  for (const auto& item : fs::recursive_directory_iterator(work_ / "state")) {
    EXPECT_EQ(item.status().permissions() & fs::perms(0077), fs::perms::none) << item.path();
  }
}

TEST_F(Trees, ReportTheChunksTheyLack) {
  const ChunkId here = *store_.put_chunk("team", "here");
  const ChunkId other = chunk_id("other");

  EXPECT_EQ(*store_.missing("team", {other, here}), std::vector{other});
  EXPECT_EQ(*store_.missing("rivals", {here}), std::vector{here});
  EXPECT_EQ(store_.missing("team", {"../../x"}).error().code, ErrorCode::kInvalid);
}

TEST_F(Trees, AcceptAChunkAgainAndRepairATruncatedOne) {
  const ChunkId id = *store_.put_chunk("team", "content");
  EXPECT_EQ(*store_.put_chunk("team", "content"), id);
  fs::resize_file(chunk_file(id), 3);

  EXPECT_EQ(*store_.put_chunk("team", "content"), id);

  EXPECT_EQ(*base::read_file(chunk_file(id)), "content");
  EXPECT_EQ(files_kept(), 1U);
}

TEST_F(Trees, RefuseAnOversizedChunk) {
  EXPECT_TRUE(store_.put_chunk("team", std::string(kChunkBytes, 'x')));
  EXPECT_EQ(store_.put_chunk("team", std::string(kChunkBytes + 1, 'x')).error().code,
            ErrorCode::kInvalid);
}

TEST_F(Trees, AcceptAChunkFromManyClientsAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (char letter = 'a'; letter <= 'z'; ++letter) {
        EXPECT_TRUE(store_.put_chunk("team", std::string(50'000, letter)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(files_kept(), 26U);
  EXPECT_EQ(*base::read_file(chunk_file(chunk_id(std::string(50'000, 'k')))),
            std::string(50'000, 'k'));
}

TEST_F(Trees, OfAnInvalidProjectNameLeaveNoTrace) {
  for (const std::string project : {"", "..", "a/b", "-a", "A", ".lock", "a.b"}) {
    EXPECT_EQ(store_.put_chunk(project, "x").error().code, ErrorCode::kInvalid) << project;
    EXPECT_EQ(store_.info(project, chunk_id("")).error().code, ErrorCode::kInvalid);
    EXPECT_EQ(store_.forget_project(project).error().code, ErrorCode::kInvalid);
  }
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(Trees, AreNotStoredWhileAChunkIsMissing) {
  plant("a", "one");
  plant("b", "two");
  plant("c", "two");
  const Scan scan = *scan_folder(source_, {});
  ASSERT_TRUE(store_.put_chunk("team", "one"));

  const auto kept = keep("team", scan.encoded);

  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(kept.error().what,
            "1 of 2 chunks of the files are missing; the first is " + chunk_id("two"));
  EXPECT_EQ(store_.info("team", scan.id).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(store_.keep("team", scan.id, {chunk_id("nothing")}).error().code, ErrorCode::kNotFound);
}

TEST_F(Trees, CanBeStoredTwice) {
  plant("a", "one");
  const auto first = send("team");
  const auto again = send("team");

  ASSERT_TRUE(again);
  EXPECT_EQ(*first, *again);
}

TEST_F(Trees, AreNotStoredUnderAWrongId) {
  const ChunkId chunk = *store_.put_chunk("team", encode({}));

  EXPECT_EQ(store_.keep("team", chunk_id("other"), {chunk}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(store_.keep("team", "../../x", {chunk}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(store_.keep("team", tree_id(encode({})), {}).error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(store_.keep("team", tree_id(encode({})), {chunk}));
}

TEST_F(Trees, AreNotStoredIfTheirManifestLeadsOut) {
  using Kind = ManifestEntry::Kind;
  const ChunkId chunk = *store_.put_chunk("team", "x");
  const ManifestEntry file{.path = "a", .bytes = 1, .chunks = {chunk}};
  const std::vector<std::vector<ManifestEntry>> hostile{
      {{.path = "../a", .bytes = 1, .chunks = {chunk}}},
      {{.path = "/tmp/a", .bytes = 1, .chunks = {chunk}}},
      {{.kind = Kind::kLink, .path = "l", .link = "/tmp"}},
      {{.kind = Kind::kLink, .path = "l", .link = ".."}},
      {{.kind = Kind::kLink, .path = "l", .link = "x"}, {.path = "l/a"}},
      {file, {.path = "a/b"}},
      {file, file},
  };
  for (const auto& entries : hostile) {
    EXPECT_EQ(keep("team", encode({entries})).error().code, ErrorCode::kInvalid);
  }
  EXPECT_TRUE(keep("team", encode({{file}})));
}

TEST_F(Trees, AreNotStoredIfTheirManifestHasAWrongChunkSizeAndTheChunkIsKept) {
  const ChunkId chunk = *store_.put_chunk("team", "four");

  const auto kept = keep("team", encode({{{.path = "a", .bytes = 3, .chunks = {chunk}}}}));

  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().what,
            "chunk " + chunk + " has 4 bytes, but according to the list of files it has 3");
  EXPECT_TRUE(store_.missing("team", {chunk})->empty());
}

TEST_F(Trees, AreNotStoredIfTheyExceedTheLimit) {
  plant("a", "12345");
  store_ = TreeStore(folder_, {.tree_bytes = 4});

  const auto sent = send("team");

  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().what, "the files have 5 B, and this server accepts at most 4 B");
}

TEST_F(Trees, WithADamagedChunkNameItAndAreRepairedWhenItIsSentAgain) {
  plant("a", "good");
  plant("b", "fine");
  const auto sent = send("team");
  ASSERT_TRUE(sent);
  std::ofstream(chunk_file(chunk_id("fine"))) << "evil";

  const auto unpacked = store_.unpack("team", sent->id, empty_folder("one"));

  ASSERT_FALSE(unpacked);
  EXPECT_EQ(unpacked.error().what,
            "chunk " + chunk_id("fine") + " was damaged on the disk, of 'b'");
  EXPECT_EQ(store_.info("team", sent->id).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(*store_.missing("team", {chunk_id("good"), chunk_id("fine")}),
            std::vector{chunk_id("fine")});
  ASSERT_TRUE(send("team"));
  EXPECT_TRUE(store_.unpack("team", sent->id, empty_folder("two")));
}

TEST_F(Trees, WithAChunkTruncatedByACrashAreNotStoredAndRequestItAgain) {
  plant("a", "whole");
  const Scan scan = *scan_folder(source_, {});
  ASSERT_TRUE(store_.put_chunk("team", "whole"));
  fs::resize_file(chunk_file(chunk_id("whole")), 0);

  EXPECT_EQ(keep("team", scan.encoded).error().code, ErrorCode::kNotFound);

  EXPECT_EQ(*store_.missing("team", {chunk_id("whole")}), std::vector{chunk_id("whole")});
}

TEST_F(Trees, WithADamagedManifestAreNotUnpacked) {
  plant("a", "x");
  const auto sent = send("team");
  const fs::path list = chunk_file(sent->id);  // the manifest has one chunk, and therefore one id
  std::ofstream(list) << "muster-tree 1\nf ../../evil";

  const auto unpacked = store_.unpack("team", sent->id, empty_folder("target"));

  ASSERT_FALSE(unpacked);
  EXPECT_EQ(unpacked.error().what, "chunk " + sent->id + " was damaged on the disk");
  EXPECT_TRUE(fs::is_empty(work_ / "target"));
}

TEST_F(Trees, WithADamagedRecordReportItsPlace) {
  plant("a", "x");
  const auto sent = send("team");
  for (const std::string text : {"", "muster-kept 1\n", "muster-kept 1\n1 1\n",
                                 "muster-kept 1\n1 x\n", "muster-kept 1\n1 1\n../x\n"}) {
    std::ofstream(tree_file(sent->id)) << text;
    const auto info = store_.info("team", sent->id);
    ASSERT_FALSE(info) << text;
    EXPECT_EQ(info.error().what, "'" + tree_file(sent->id).string() + "' is damaged");
  }
}

TEST_F(Trees, OverwriteNothing) {
  plant("a", "new");
  plant("d/b", "new");
  const auto sent = send("team");
  const fs::path outside = empty_folder("outside");
  std::ofstream(outside / "a") << "old";
  const fs::path target = empty_folder("target");
  fs::create_symlink(outside / "a", target / "a");
  const fs::path second = empty_folder("second");
  fs::create_directory_symlink(outside, second / "d");

  EXPECT_EQ(store_.unpack("team", sent->id, target).error().code, ErrorCode::kConflict);
  EXPECT_FALSE(store_.unpack("team", sent->id, second));

  EXPECT_EQ(*base::read_file(outside / "a"), "old");
  EXPECT_FALSE(fs::exists(outside / "b"));
  EXPECT_TRUE(store_.info("team", sent->id)) << "a target in the way is no fault of the tree's";
}

TEST_F(Trees, OfOtherProjectsAreInvisible) {
  plant("a", "x");
  const auto sent = send("team");

  const auto info = store_.info("rivals", sent->id);

  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(info.error().what, "there are no files " + sent->id + " in project 'rivals'");
  EXPECT_EQ(store_.unpack("rivals", sent->id, empty_folder("t")).error().code,
            ErrorCode::kNotFound);
}

TEST_F(Trees, WithoutUseAreRemovedWithTheirUnsharedChunks) {
  plant("a", "shared");
  plant("b", "old");
  const auto old = send("team");
  plant("b", "used");
  const auto used = send("team");
  fs::remove(source_ / "b");
  plant("c", "young");
  const auto young = send("team");
  ASSERT_TRUE(store_.put_chunk("team", "orphan"));
  age_everything();
  ASSERT_TRUE(store_.info("team", young->id));
  ASSERT_TRUE(store_.put_chunk("team", "on its way"));

  const auto removed = store_.collect({{"team", used->id}}, yesterday_);

  ASSERT_TRUE(removed) << removed.error().to_string();
  EXPECT_GT(*removed, static_cast<int64_t>("old"s.size() + "orphan"s.size()));
  EXPECT_EQ(store_.info("team", old->id).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(*store_.missing("team", {chunk_id("old"), chunk_id("orphan"), chunk_id("shared"),
                                     chunk_id("used"), chunk_id("young"), chunk_id("on its way")}),
            (std::vector{chunk_id("old"), chunk_id("orphan")}));
  EXPECT_TRUE(store_.unpack("team", used->id, empty_folder("one")));
  EXPECT_TRUE(store_.unpack("team", young->id, empty_folder("two")));
}

TEST_F(Trees, ThatNoJobUsesAreLimitedInEachProject) {
  constexpr int64_t kBlock = 4096;
  store_ = TreeStore(folder_, {.unused_bytes = 4 * kBlock});
  plant("a", "x");
  const auto sent = send("team");  // two chunks: the file and the manifest
  ASSERT_TRUE(store_.put_chunk("team", "third"));
  ASSERT_TRUE(store_.put_chunk("team", "fourth"));

  const auto refused = store_.put_chunk("team", "fifth");

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(refused.error().what,
            "project 'team' has 16 KiB of uploaded files that no job uses, and this server keeps "
            "at most 16 KiB");
  EXPECT_NE(refused.error().advice.find("limits.unused_workspace_bytes"), std::string::npos);
  EXPECT_TRUE(store_.put_chunk("team", "third")) << "it is already there";
  EXPECT_TRUE(store_.put_chunk("rivals", "fifth"));
  EXPECT_TRUE(store_.keep("team", sent->id, {chunk_id(encoded_source())}));
  // Only the tree of a job does not count.
  ASSERT_TRUE(store_.collect("team", {}, yesterday_));
  EXPECT_FALSE(store_.put_chunk("team", "fifth"));
  ASSERT_TRUE(store_.collect("team", {{"team", sent->id}}, yesterday_));
  EXPECT_TRUE(store_.put_chunk("team", "fifth"));
  EXPECT_TRUE(store_.put_chunk("team", "sixth"));
  EXPECT_FALSE(store_.put_chunk("team", "seventh"));
  // Old files without a job are removed.
  age_everything();
  ASSERT_TRUE(store_.collect("team", {{"team", sent->id}}, yesterday_));
  EXPECT_TRUE(store_.put_chunk("team", "seventh"));
  EXPECT_TRUE(store_.unpack("team", sent->id, empty_folder("t")));
}

TEST_F(Trees, OfWhichOneIsDamagedAreNotCounted) {
  store_ = TreeStore(folder_, {.unused_bytes = 1});
  ASSERT_TRUE(store_.put_chunk("team", "x"));
  EXPECT_FALSE(store_.put_chunk("team", "y"));
  fs::create_directories(tree_file("").parent_path());
  const std::string id(64, 'a');
  std::ofstream(tree_file(id)) << "damaged";

  ASSERT_FALSE(store_.collect("team", {{"team", id}}, yesterday_));

  EXPECT_TRUE(store_.put_chunk("team", "y"));
}

TEST_F(Trees, OfAProjectAreNearlyFullBeforeChunksAreRefused) {
  store_ = TreeStore(folder_, {.unused_bytes = int64_t{65} << 20});

  EXPECT_FALSE(store_.is_nearly_full("team"));
  ASSERT_TRUE(store_.put_chunk("team", std::string(kChunkBytes, 'x')));
  EXPECT_FALSE(store_.is_nearly_full("team"));
  ASSERT_TRUE(store_.put_chunk("team", "y"));

  EXPECT_TRUE(store_.is_nearly_full("team"));
  EXPECT_FALSE(store_.is_nearly_full("rivals"));
  EXPECT_TRUE(store_.put_chunk("team", "z"));
  ASSERT_TRUE(store_.forget_project("team"));
  EXPECT_FALSE(store_.is_nearly_full("team"));
}

TEST_F(Trees, UsedOnlyInAnotherProjectAreRemoved) {
  plant("a", "x");
  const auto sent = send("team");
  ASSERT_TRUE(send("rivals"));
  age_everything();

  ASSERT_TRUE(store_.collect({{"rivals", sent->id}}, yesterday_));

  EXPECT_FALSE(store_.info("team", sent->id));
  EXPECT_TRUE(store_.info("rivals", sent->id));
}

TEST_F(Trees, ThatWereLookedUpAreKeptAndSoAreTheirChunks) {
  plant("a", "x");
  const auto sent = send("team");
  ASSERT_TRUE(store_.put_chunk("team", "asked after"));
  age_everything();

  ASSERT_TRUE(store_.info("team", sent->id));
  ASSERT_TRUE(store_.missing("team", {chunk_id("asked after")}));
  EXPECT_EQ(*store_.collect({}, yesterday_), 0);
  age_everything();
  ASSERT_TRUE(store_.unpack("team", sent->id, empty_folder("t")));
  ASSERT_TRUE(store_.collect({}, yesterday_));

  EXPECT_TRUE(store_.info("team", sent->id));
}

TEST_F(Trees, ThatAreUnreadableKeepAllChunksOfTheirProjectOnly) {
  plant("a", "x");
  const auto sent = send("team");
  ASSERT_TRUE(store_.put_chunk("team", "orphan"));
  ASSERT_TRUE(store_.put_chunk("rivals", "orphan"));
  std::ofstream(tree_file(sent->id)) << "damaged";
  age_everything();

  const auto removed = store_.collect({{"team", sent->id}}, yesterday_);

  EXPECT_FALSE(removed);
  EXPECT_TRUE(store_.missing("team", {chunk_id("x"), chunk_id("orphan")})->empty());
  EXPECT_EQ(store_.missing("rivals", {chunk_id("orphan")})->size(), 1U);
  age_everything();
  EXPECT_TRUE(store_.collect({}, yesterday_)) << "what nobody uses goes unread";
  EXPECT_EQ(files_kept(), 0U);
}

TEST_F(Trees, LeaveNoIncompleteFilesForLong) {
  ASSERT_TRUE(store_.put_chunk("team", "x"));
  std::ofstream(folder_ / "team/incoming/half") << "hal";
  EXPECT_EQ(*store_.collect({}, yesterday_), 0);
  age(folder_ / "team/incoming/half", std::chrono::hours(48));

  EXPECT_EQ(*store_.collect({}, yesterday_), 3);
}

TEST_F(Trees, OfADeletedProjectAreRemoved) {
  plant("a", "x");
  const auto sent = send("team");
  ASSERT_TRUE(send("rivals"));

  ASSERT_TRUE(store_.forget_project("team"));
  ASSERT_TRUE(store_.forget_project("team"));

  EXPECT_FALSE(fs::exists(folder_ / "team"));
  EXPECT_TRUE(store_.info("rivals", sent->id));
}

TEST_F(Trees, OfADeletedProjectAreSetAsideAlsoWhileOthersUseTheStore) {
  plant("a", "x");
  ASSERT_TRUE(send("team"));
  const base::UniqueFd user(::open((folder_ / ".lock").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(user.get(), LOCK_SH), 0);

  ASSERT_TRUE(store_.forget_project("team")) << "it does not wait for the lock";

  EXPECT_FALSE(fs::exists(folder_ / "team"));
  ASSERT_TRUE(store_.put_chunk("team", "of the next project of this name"));
  ASSERT_TRUE(store_.remove_forgotten());
  EXPECT_EQ(files_kept(), 1U);
}

// A fifo in the place of the manifest's chunk holds keep() back until the project was deleted.
TEST_F(Trees, AreNotStoredInANewProjectOfTheSameNameIfTheirProjectIsDeletedMeanwhile) {
  const std::string manifest = encode({});
  const ChunkId chunk = *store_.put_chunk("team", manifest);
  fs::remove(chunk_file(chunk));
  ASSERT_EQ(::mkfifo(chunk_file(chunk).c_str(), 0600), 0);
  auto kept = std::async(std::launch::async,
                         [&] { return store_.keep("team", tree_id(manifest), {chunk}); });
  base::UniqueFd fifo(::open(chunk_file(chunk).c_str(), O_WRONLY | O_CLOEXEC));

  EXPECT_TRUE(store_.forget_project("team"));
  EXPECT_TRUE(store_.remove_forgotten());
  EXPECT_TRUE(store_.put_chunk("team", "of the next project of this name"));
  EXPECT_EQ(::write(fifo.get(), manifest.data(), manifest.size()),
            static_cast<ssize_t>(manifest.size()));
  fifo.reset();

  const auto result = kept.get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kConflict);
  EXPECT_FALSE(fs::exists(tree_file(tree_id(manifest))));
}

// As in the test above, but the new project stores the same files meanwhile.
TEST_F(Trees, OfANewProjectStayIfTheSameFilesOfADeletedProjectOfThisNameAreStoredLast) {
  const std::string manifest = encode({});
  const ChunkId chunk = *store_.put_chunk("team", manifest);
  fs::remove(chunk_file(chunk));
  ASSERT_EQ(::mkfifo(chunk_file(chunk).c_str(), 0600), 0);
  auto kept = std::async(std::launch::async,
                         [&] { return store_.keep("team", tree_id(manifest), {chunk}); });
  base::UniqueFd fifo(::open(chunk_file(chunk).c_str(), O_WRONLY | O_CLOEXEC));

  EXPECT_TRUE(store_.forget_project("team"));
  EXPECT_TRUE(store_.remove_forgotten());
  EXPECT_TRUE(store_.put_chunk("team", manifest));
  EXPECT_TRUE(store_.keep("team", tree_id(manifest), {chunk}));
  EXPECT_EQ(::write(fifo.get(), manifest.data(), manifest.size()),
            static_cast<ssize_t>(manifest.size()));
  fifo.reset();

  const auto result = kept.get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(store_.info("team", tree_id(manifest)));
}

TEST_F(Trees, AreNotStoredIfTheFolderOfTheProjectCannotBeOpened) {
  const std::string manifest = encode({});
  const ChunkId chunk = *store_.put_chunk("rivals", manifest);
  std::ofstream(folder_ / "team") << "a file";

  const auto kept = store_.keep("team", tree_id(manifest), {chunk});

  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().what,
            "cannot open '" + (folder_ / "team").string() + "': Not a directory");
}

TEST_F(Trees, OfADeletedProjectAreRemovedByTheNextServerIfTheFirstWasKilled) {
  plant("a", "x");
  ASSERT_TRUE(send("team"));
  ASSERT_TRUE(store_.forget_project("team"));
  ASSERT_GT(files_kept(), 0U);

  TreeStore next(folder_);
  ASSERT_TRUE(next.collect({}, yesterday_));

  EXPECT_EQ(files_kept(), 0U);
}

TEST_F(Trees, OfAnEmptyStoreAreNotAnError) {
  EXPECT_EQ(*store_.collect({}, yesterday_), 0);
  EXPECT_TRUE(store_.forget_project("team"));
  EXPECT_EQ(store_.info("team", chunk_id("")).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(store_.missing("team", {chunk_id("")})->size(), 1U);
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(Trees, CanBeSentDuringACollection) {
  plant("a", "shared");
  std::string last = send("team")->id;
  std::atomic<bool> done = false;
  std::thread collector([&] {
    while (!done) EXPECT_TRUE(store_.collect({}, yesterday_));
  });

  for (int i = 0; i < 20; ++i) {
    plant("b", std::to_string(i));
    // The collector may have removed it already.
    std::error_code ignored;
    const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(48);
    fs::last_write_time(tree_file(last), long_ago, ignored);
    fs::last_write_time(chunk_file(chunk_id("shared")), long_ago, ignored);
    const auto sent = send("team");
    EXPECT_TRUE(sent) << sent.error().to_string();
    if (!sent) break;
    EXPECT_TRUE(store_.unpack("team", sent->id, empty_folder(std::to_string(i))));
    last = sent->id;
  }
  done = true;
  collector.join();
}

}  // namespace
}  // namespace muster::workspace
