#include "engine/folder/open_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/descriptors.h"
#include "base/files.h"
#include "base/test_folder.h"
#include "base/unique_fd.h"

namespace muster::engine {
namespace {

class SeldomFiles : public testing::Test {
 protected:
  SeldomFile open(const std::string& name) {
    auto file = SeldomFile::open(files_, where_ / name);
    EXPECT_TRUE(file) << file.error().to_string();
    return *std::move(file);
  }

  static void append(const SeldomFile& file, const std::string& text, off_t at) {
    const auto descriptor = file.descriptor();
    ASSERT_TRUE(descriptor) << descriptor.error().to_string();
    ASSERT_EQ(::pwrite((*descriptor)->get(), text.data(), text.size(), at),
              static_cast<ssize_t>(text.size()));
  }

  std::string content(const std::string& name) const { return *base::read_file(where_ / name); }

  base::TestFolder where_;
  std::shared_ptr<OpenFiles> files_ = std::make_shared<OpenFiles>(2);
};

TEST_F(SeldomFiles, TakeNoMoreDescriptorsThanTheLimit) {
  const int64_t before = base::count_descriptors().open;
  std::vector<SeldomFile> all;
  for (int i = 0; i < 10; ++i) all.push_back(open(std::to_string(i)));
  EXPECT_EQ(base::count_descriptors().open, before + 2);

  for (int round = 0; round < 3; ++round) {
    for (const SeldomFile& file : all) append(file, "abc", off_t{3} * round);
    EXPECT_EQ(base::count_descriptors().open, before + 2);
  }

  for (int i = 0; i < 10; ++i) EXPECT_EQ(content(std::to_string(i)), "abcabcabc");
  all.clear();
  EXPECT_EQ(base::count_descriptors().open, before);
}

TEST_F(SeldomFiles, TheOneThatWasNotUsedForTheLongestTimeIsClosed) {
  const SeldomFile first = open("first");
  const SeldomFile second = open("second");
  const int number = (*first.descriptor())->get();
  const SeldomFile third = open("third");  // closes the second

  EXPECT_EQ((*first.descriptor())->get(), number);
  append(second, "x", 0);
  append(third, "x", 0);
  EXPECT_EQ(content("second") + content("third"), "xx");
}

TEST_F(SeldomFiles, ADescriptorInUseIsNotClosed) {
  const SeldomFile first = open("first");
  const auto descriptor = *first.descriptor();
  const SeldomFile second = open("second");
  const SeldomFile third = open("third");

  EXPECT_EQ(::pwrite(descriptor->get(), "x", 1, 0), 1);

  EXPECT_EQ(content("first"), "x");
}

TEST_F(SeldomFiles, AFileThatWasRenamedIsFound) {
  SeldomFile file = open("draft");
  std::filesystem::rename(where_ / "draft", where_ / "final");
  file.renamed(where_ / "final");
  const SeldomFile second = open("second");
  const SeldomFile third = open("third");

  append(file, "x", 0);

  EXPECT_EQ(content("final"), "x");
  EXPECT_FALSE(std::filesystem::exists(where_ / "draft"));
}

TEST_F(SeldomFiles, AFileThatWasRemovedIsNotMadeAgain) {
  const SeldomFile file = open("removed");
  const SeldomFile second = open("second");
  const SeldomFile third = open("third");
  std::filesystem::remove(where_ / "removed");

  const auto descriptor = file.descriptor();

  ASSERT_FALSE(descriptor);
  EXPECT_EQ(descriptor.error().code, base::ErrorCode::kNotFound);
}

TEST_F(SeldomFiles, AreWrittenAlsoWithoutAFreeDescriptor) {
  const SeldomFile first = open("first");
  const SeldomFile second = open("second");
  const SeldomFile third = open("third");
  const int highest = (*third.descriptor())->get();
  std::vector<base::UniqueFd> fillers;  // take all lower numbers
  do {
    fillers.emplace_back(::dup(0));
  } while (fillers.back().get() < highest);
  fillers.pop_back();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  const rlimit full{.rlim_cur = static_cast<rlim_t>(highest) + 1, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &full), 0);
  append(first, "x", 0);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto refused = second.descriptor();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);

  EXPECT_EQ(content("first"), "x");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kExhausted);
}

}  // namespace
}  // namespace muster::engine
