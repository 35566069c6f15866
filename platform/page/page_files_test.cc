#include "page/page_files.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace muster::page {
namespace {

TEST(PageFiles, AreCompressedAndNamedOnce) {
  std::set<std::string_view> paths;
  for (const PageFile& file : page_files()) {
    EXPECT_TRUE(paths.insert(file.path).second) << file.path;
    EXPECT_TRUE(file.gzip.starts_with("\x1f\x8b")) << file.path;
    EXPECT_EQ(find_page_file(file.path), &file);
  }
  EXPECT_TRUE(paths.contains("index.html"));
  EXPECT_EQ(find_page_file("assets"), nullptr);
  EXPECT_EQ(find_page_file("../index.html"), nullptr);
}

TEST(PageFiles, HaveKnownTypes) {
  for (const PageFile& file : page_files()) {
    EXPECT_NE(content_type_of(file.path), "application/octet-stream") << file.path;
  }
  EXPECT_EQ(content_type_of("assets/a.js"), "text/javascript; charset=utf-8");
}

// Chosen by measurement (docs/web.md): what a browser loads before a shell is opened.
TEST(PageFiles, StayBelowTheirLimitOfWeight) {
  size_t weight = 0;
  for (const PageFile& file : page_files()) {
    if (file.path.find("terminal-") == std::string_view::npos) weight += file.gzip.size();
  }
  EXPECT_LT(weight, 400U << 10);
}

TEST(PageFiles, HaveAnEtagOfTheirContent) {
  EXPECT_EQ(etag_of({"a", "1"}), etag_of({"b", "1"}));
  EXPECT_NE(etag_of({"a", "1"}), etag_of({"a", "2"}));
}

}  // namespace
}  // namespace muster::page
