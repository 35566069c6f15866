#include "idx.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace muster::digits {
namespace {

using Bytes = std::string;

Bytes big_endian(std::uint32_t value) {
  Bytes bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

Bytes image_bytes(std::uint32_t count, std::uint32_t rows, std::uint32_t columns,
                  const Bytes& pixels) {
  return big_endian(0x803) + big_endian(count) + big_endian(rows) + big_endian(columns) + pixels;
}

Bytes label_bytes(std::uint32_t count, const Bytes& values) {
  return big_endian(0x801) + big_endian(count) + values;
}

class Idx : public ::testing::Test {
 protected:
  Idx() {
    std::string pattern = (std::filesystem::temp_directory_path() / "idx-test-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Idx() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  void write(const std::string& name, const Bytes& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
  }

  // The error of load_images() for a pair of files; empty if it accepts them.
  std::string fault_of(const Bytes& image_file, const Bytes& label_file) const {
    write("i", image_file);
    write("l", label_file);
    const auto set = load_images(path("i"), path("l"));
    return set ? "" : set.error();
  }

  std::string folder_;
};

TEST_F(Idx, ReadsImagesAndLabelsInOrder) {
  write("i", image_bytes(2, 1, 3, {1, 2, 3, 4, 5, 6}));
  write("l", label_bytes(2, {7, 9}));
  const auto set = load_images(path("i"), path("l"));
  ASSERT_TRUE(set) << set.error();
  EXPECT_EQ(set->rows, 1);
  EXPECT_EQ(set->columns, 3);
  EXPECT_EQ(set->pixels, (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(set->labels, (std::vector<std::uint8_t>{7, 9}));
}

TEST_F(Idx, NamesTheFileAndTheWrongValue) {
  const Bytes good_images = image_bytes(2, 1, 2, {1, 2, 3, 4});
  const Bytes good_labels = label_bytes(2, {0, 1});
  const std::string i = path("i");
  const std::string l = path("l");
  struct Row {
    Bytes images;
    Bytes labels;
    std::string fault;
  };
  for (const Row& row : {
           Row{good_labels, good_labels, i + " begins with 0x00000801, not with 0x00000803"},
           Row{good_images, good_images, l + " begins with 0x00000803, not with 0x00000801"},
           Row{"", good_labels, i + " ends after 0 bytes, within its header of 16"},
           Row{good_images.substr(0, 15), good_labels,
               i + " ends after 15 bytes, within its header of 16"},
           Row{good_images.substr(0, 19), good_labels,
               i + " has 19 bytes, but its header announces 20"},
           Row{good_images + "x", good_labels, i + " has 21 bytes, but its header announces 20"},
           Row{good_images, good_labels.substr(0, 9),
               l + " has 9 bytes, but its header announces 10"},
           Row{good_images, label_bytes(3, {0, 1, 2}),
               std::string(i).append(" has 2 images, but ").append(l).append(" has 3 labels")},
           Row{good_images, label_bytes(2, {0, 10}), l + " has the label 10 at item 1"},
           Row{image_bytes(0, 1, 1, ""), label_bytes(0, ""), i + " announces no items"},
           Row{image_bytes(1, 0, 1, ""), good_labels,
               i + " announces images with a side of 0 pixels"},
           Row{image_bytes(0xffffffff, 0xffffffff, 0xffffffff, ""), good_labels,
               i + " announces images with a side of 4294967295 pixels"},
           Row{good_images, good_labels, ""},
       }) {
    EXPECT_EQ(fault_of(row.images, row.labels), row.fault);
  }
}

TEST_F(Idx, NamesTheMissingFile) {
  const auto data = load_dataset(folder_);
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error(),
            "cannot open " + path("train-images-idx3-ubyte") + ": No such file or directory");
}

TEST_F(Idx, AdvisesToUnpackACompressedFile) {
  write("train-images-idx3-ubyte.gz", "");
  const auto data = load_dataset(folder_);
  ASSERT_FALSE(data);
  EXPECT_NE(data.error().find("(unpack " + path("train-images-idx3-ubyte.gz") + " first)"),
            std::string::npos);
}

TEST_F(Idx, ScalesByTheLargestValueOfTheTrainingImages) {
  write("train-images-idx3-ubyte", image_bytes(1, 1, 2, {3, 16}));
  write("train-labels-idx1-ubyte", label_bytes(1, {1}));
  write("t10k-images-idx3-ubyte", image_bytes(1, 1, 2, {0, 15}));
  write("t10k-labels-idx1-ubyte", label_bytes(1, {1}));
  const auto data = load_dataset(folder_);
  ASSERT_TRUE(data) << data.error();
  EXPECT_EQ(data->scale, 1.0F / 16);
}

TEST_F(Idx, RejectsTestImagesOfAnotherSize) {
  write("train-images-idx3-ubyte", image_bytes(1, 1, 2, {3, 16}));
  write("train-labels-idx1-ubyte", label_bytes(1, {1}));
  write("t10k-images-idx3-ubyte", image_bytes(1, 2, 2, {0, 15, 1, 1}));
  write("t10k-labels-idx1-ubyte", label_bytes(1, {1}));
  const auto data = load_dataset(folder_);
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error(),
            folder_ + " has training images of 1 x 2 pixels, but test images of 2 x 2");
}

TEST(IdxOfTheSource, ContainsTheDigits) {
  const auto data = load_dataset(DIGITS_DATA);
  ASSERT_TRUE(data) << data.error();
  EXPECT_EQ(data->train.size(), 1437u);
  EXPECT_EQ(data->test.size(), 360u);
  EXPECT_EQ(data->train.pixels_per_image(), 64u);
  EXPECT_EQ(data->scale, 1.0F / 16);
}

}  // namespace
}  // namespace muster::digits
