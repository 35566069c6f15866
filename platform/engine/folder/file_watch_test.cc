#include "engine/folder/file_watch.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <optional>

namespace muster::engine {
namespace {

class Watch : public testing::Test {
 protected:
  Watch() : path_(testing::TempDir() + "watched" + std::to_string(::getpid())) { append(""); }
  ~Watch() override { ::unlink(path_.c_str()); }

  void append(const std::string& text) const { std::ofstream(path_, std::ios::app) << text; }

  base::EventLoop loop_;
  std::string path_;
};

TEST_F(Watch, ReportsAChangeToEveryWatcher) {
  FileWatch watch(loop_);
  int notifications = 0;
  const auto count = [&] {
    if (++notifications == 2) loop_.stop();
  };
  const auto one = watch.watch(path_, count);
  const auto two = watch.watch(path_, count);

  append("x");
  loop_.run();

  EXPECT_EQ(notifications, 2);
}

TEST_F(Watch, DoesNotCallADroppedHandle) {
  FileWatch watch(loop_);
  bool dropped_notified = false;
  auto dropped = watch.watch(path_, [&] { dropped_notified = true; });
  const auto kept = watch.watch(path_, [&] { loop_.stop(); });
  dropped.reset();

  append("x");
  loop_.run();

  EXPECT_FALSE(dropped_notified);
}

TEST_F(Watch, AHandleMayOutliveTheWatch) {
  std::shared_ptr<void> handle;
  {
    FileWatch watch(loop_);
    handle = watch.watch(path_, [] {});
  }
  handle.reset();
}

TEST_F(Watch, ACallbackMayDropItsOwnHandle) {
  FileWatch watch(loop_);
  std::shared_ptr<void> handle;
  handle = watch.watch(path_, [&] {
    handle.reset();
    loop_.stop();
  });

  append("x");
  loop_.run();

  EXPECT_EQ(handle, nullptr);
}

TEST_F(Watch, ComparesFilesWhileTheKernelDeniesADescriptor) {
  const auto keeps_reactor = loop_.after(std::chrono::hours(1), [] {});
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  FileWatch watch(loop_);
  int notifications = 0;
  const auto count = [&] {
    if (++notifications == 2) loop_.stop();
  };
  const auto one = watch.watch(path_, count);
  const auto two = watch.watch(path_, count);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);

  append("x");
  loop_.run();

  EXPECT_EQ(notifications, 2);
}

TEST_F(Watch, ReportsAFileThatTheKernelCouldNotWatchYet) {
  ::unlink(path_.c_str());
  FileWatch watch(loop_);
  const auto handle = watch.watch(path_, [&] { loop_.stop(); });

  append("x");
  loop_.run();
}

TEST_F(Watch, ReportsAComparedFolderWhoseFileChanges) {
  std::filesystem::path folder = path_ + ".folder";
  FileWatch watch(loop_);
  const auto handle = watch.watch(folder, [&] { loop_.stop(); });
  std::filesystem::create_directory(folder);
  loop_.run();

  std::ofstream(folder / "0") << "2";
  loop_.run();

  std::filesystem::remove_all(folder);
}

TEST_F(Watch, ACallbackOfAComparedFileMayEndTheWatch) {
  ::unlink(path_.c_str());
  std::optional<FileWatch> watch(loop_);
  const auto handle = watch->watch(path_, [&] {
    watch.reset();
    loop_.stop();
  });

  append("x");
  loop_.run();

  EXPECT_FALSE(watch);
}

}  // namespace
}  // namespace muster::engine
