// Which node of memory lies beside a device, and which bytes of a factor belong there.

#include "run/numa.hpp"
#include "schedule/task.hpp"

#include <gtest/gtest.h>

#include <map>

#include "store/memory_store.hpp"
#include "strata/error.hpp"

namespace strata {
namespace {

// ---- devices

/// One of two packages with a node, a core and a PCI device beside it.
std::string package_xml(int number, const std::string& bus) {
  const std::string set = number == 0 ? "0x00000001" : "0x00000002";
  const std::string sets = " cpuset=\"" + set + "\" complete_cpuset=\"" + set + "\" nodeset=\"" +
                           set + "\" complete_nodeset=\"" + set + "\"";
  const auto object = [&](const std::string& type, int id, const std::string& more) {
    return "<object type=\"" + type + "\" os_index=\"" + std::to_string(number) + "\"" + sets +
           " gp_index=\"" + std::to_string(10 * (number + 1) + id) + "\"" + more + ">";
  };
  const std::string id = std::to_string(10 * (number + 1) + 5);
  return object("Package", 0, "") + object("NUMANode", 1, " local_memory=\"1073741824\"") +
         "<page_type size=\"4096\" count=\"262144\"/></object>" + object("Core", 2, "") +
         object("PU", 3, "") + "</object></object>" + "<object type=\"Bridge\" gp_index=\"" + id +
         "0\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[" + bus + "-" + bus + "]\">" +
         "<object type=\"PCIDev\" gp_index=\"" + id + "1\" pci_busid=\"0000:" + bus +
         ":00.0\" pci_type=\"0302 [10de:2335] [10de:18be] a1\" pci_link_speed=\"63.0\"/>" +
         "</object></object>";
}

/// Two packages, with a device each, and one that hangs on both.
NumaTopology two_packages() {
  const std::string sets =
      "cpuset=\"0x00000003\" complete_cpuset=\"0x00000003\" allowed_cpuset=\"0x00000003\" "
      "nodeset=\"0x00000003\" complete_nodeset=\"0x00000003\" allowed_nodeset=\"0x00000003\"";
  return NumaTopology::from_xml(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
      "<topology version=\"2.0\">\n<object type=\"Machine\" os_index=\"0\" " +
      sets + " gp_index=\"1\">" + package_xml(0, "1b") + package_xml(1, "9b") +
      "<object type=\"Bridge\" gp_index=\"300\" bridge_type=\"0-1\" depth=\"0\" "
      "bridge_pci=\"0000:[c1-c1]\"><object type=\"PCIDev\" gp_index=\"301\" "
      "pci_busid=\"0000:c1:00.0\" pci_type=\"0302 [10de:2335] [10de:18be] a1\" "
      "pci_link_speed=\"63.0\"/></object></object></topology>\n");
}

TEST(NumaTopology, FindsTheNodeBesideADevice) {
  const NumaTopology numa = two_packages();
  EXPECT_EQ(numa.nodes(), 2);
  EXPECT_EQ(numa.node_of_pci("0000:1b:00.0"), 0);
  EXPECT_EQ(numa.node_of_pci("0000:9b:00.0"), 1);
  EXPECT_EQ(numa.node_of_pci("0000:9B:00.0"), 1) << "as CUDA writes it";
  EXPECT_EQ(numa.node_of_pci("0000:c1:00.0"), NumaTopology::kUnknown) << "as near to both";
  EXPECT_EQ(numa.node_of_pci("0000:02:00.0"), NumaTopology::kUnknown);
  EXPECT_EQ(numa.node_of_pci(""), NumaTopology::kUnknown);
  EXPECT_EQ(numa.node_of_pci("no bus"), NumaTopology::kUnknown);
}

TEST(NumaTopology, KnowsMachinesWithoutDevices) {
  EXPECT_EQ(NumaTopology::synthetic("pack:4 [numa] core:2 pu:1").nodes(), 4);
  EXPECT_EQ(NumaTopology::synthetic("core:2 pu:1").nodes(), 1);
  EXPECT_EQ(NumaTopology::synthetic("pack:2 [numa] pu:1").node_of_pci("0000:1b:00.0"),
            NumaTopology::kUnknown);
  EXPECT_THROW((void)NumaTopology::synthetic("two of everything"), Error);
  EXPECT_THROW((void)NumaTopology::from_xml("<topology"), Error);
}

TEST(NumaTopology, OfThisMachineIsKnownAndPlacesWhereThereIsAChoice) {
  const NumaTopology& numa = NumaTopology::machine();
  EXPECT_GE(numa.nodes(), 1);
  BlockTable blocks;
  (void)blocks.add({.name = "A", .rows = 1 << 17, .cols = 2, .tile_rows = 1 << 17});
  FamilyMemory memory(blocks, 0);
  const NumaPreference here(numa, 0);
  const bool placed = numa.place(memory.data(), 1 << 20, 0);
  EXPECT_TRUE(numa.nodes() > 1 || !placed) << "one node: nothing to choose";
  EXPECT_FALSE(numa.place(memory.data(), 1 << 20, NumaTopology::kUnknown));
  EXPECT_FALSE(numa.place(memory.data(), 1 << 20, 4000)) << "no such node";
  EXPECT_FALSE(numa.place(memory.data(), 100, 0)) << "no whole page";
  memory.data()[(1 << 20) - 1] = std::byte{1};  // it is still memory
}

// ---- bytes

constexpr std::int64_t kPage = 4096;

BlockTable triangle(std::int64_t n, std::int64_t tile) {
  BlockTable blocks;
  (void)blocks.add({.name = "A",
                    .rows = n,
                    .cols = n,
                    .tile_rows = tile,
                    .tile_cols = tile,
                    .shape = Shape::lower});
  return blocks;
}

/// The parts of a triangle whose rows belong to devices beside these nodes, in a serpentine
/// distribution.
std::vector<NumaPart> parts_of(const BlockTable& blocks, const std::vector<int>& nodes) {
  std::vector<int> node_of_row;
  for (std::int64_t r = 0; r < blocks.block_rows(0); ++r) {
    const int device = device_of_row(r, static_cast<int>(nodes.size()));
    node_of_row.push_back(nodes[static_cast<std::size_t>(device)]);
  }
  return numa_parts(blocks, 0, node_of_row, kPage);
}

TEST(NumaParts, GiveEachPageToTheNodeOfABlockThatLiesInIt) {
  for (const std::vector<int>& nodes :
       {std::vector{0, 1}, std::vector{1, 1}, std::vector{0, 0, 1, 1}, std::vector{0, 3, 2},
        std::vector{0, NumaTopology::kUnknown, 1}}) {
    for (const std::int64_t n : {700, 901, 1024}) {
      const BlockTable blocks = triangle(n, 128);
      std::map<std::int64_t, int> node_of_page;
      std::int64_t end = 0;
      for (const NumaPart& part : parts_of(blocks, nodes)) {
        EXPECT_EQ(part.offset % kPage, 0);
        EXPECT_GE(part.offset, end) << "parts overlap";
        EXPECT_GT(part.bytes, 0);
        end = part.offset + part.bytes;
        EXPECT_TRUE(end % kPage == 0 || end == blocks.total_bytes(0));
        for (std::int64_t at = part.offset; at < end; at += kPage) {
          node_of_page[at / kPage] = part.node;
        }
      }
      for (std::int64_t c = 0; c < blocks.block_cols(0); ++c) {
        for (std::int64_t r = c; r < blocks.block_rows(0); ++r) {
          const BlockId id(0, r, c);
          const std::int64_t begin = blocks.byte_offset(id);
          const std::int64_t inner = (begin + kPage - 1) / kPage;  // pages of this block alone
          for (std::int64_t page = inner; (page + 1) * kPage <= begin + blocks.bytes(id); ++page) {
            const int node =
                nodes[static_cast<std::size_t>(device_of_row(r, static_cast<int>(nodes.size())))];
            const auto found = node_of_page.find(page);
            ASSERT_EQ(found == node_of_page.end() ? NumaTopology::kUnknown : found->second, node)
                << blocks.name(id);
          }
        }
      }
    }
  }
}

TEST(NumaParts, NeighboursOfOneNodeAreOnePart) {
  const BlockTable blocks = triangle(1000, 128);
  const std::vector<NumaPart> all{{0, blocks.total_bytes(0), 1}};
  EXPECT_EQ(parts_of(blocks, {1}), all);
  EXPECT_EQ(parts_of(blocks, {1, 1, 1}), all);
  EXPECT_GT(parts_of(blocks, {0, 1}).size(), 20U);
  EXPECT_LT(parts_of(blocks, {0, 0, 1, 1}).size(), parts_of(blocks, {0, 1, 0, 1}).size());
}

TEST(NumaParts, AreLeftOutWhereTheyWouldNotPay) {
  EXPECT_TRUE(parts_of(triangle(1000, 128), {NumaTopology::kUnknown}).empty());
  EXPECT_TRUE(parts_of(triangle(1000, 64), {0, 1}).empty()) << "tiles of 8 pages";
  EXPECT_FALSE(parts_of(triangle(1000, 91), {0, 1}).empty()) << "just above 16";
  EXPECT_TRUE(parts_of(triangle(0, 128), {0, 1}).empty());
  EXPECT_TRUE(parts_of(triangle(128 * 300, 128), {0, 1}).empty()) << "22,500 parts";
  EXPECT_EQ(parts_of(triangle(128 * 200, 128), {1, 1}).size(), 1U);
}

}  // namespace
}  // namespace strata
