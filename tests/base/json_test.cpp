// JSON values against texts written down by hand.

#include "base/json.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

namespace strata {
namespace {

TEST(Json, prints_each_kind_and_orders_fields_by_name) {
  const Json object{{"z", nullptr},
                    {"truth", true},
                    {"whole", -3},
                    {"natural", std::numeric_limits<std::uint64_t>::max()},
                    {"real", 0.1},
                    {"even", 2.0},
                    {"text", "a\"b\n\xc3\xa9"},
                    {"list", std::vector<double>{1, 2.5}},
                    {"pair", std::array<std::int64_t, 2>{7, 8}},
                    {"mixed", Json::array({1, "x", Json::array()})},
                    {"nested", {{"b", Json::object()}, {"a", 1U}}}};
  EXPECT_EQ(object.dump(),
            "{\"even\":2.0,\"list\":[1.0,2.5],\"mixed\":[1,\"x\",[]],\"natural\":"
            "18446744073709551615,\"nested\":{\"a\":1,\"b\":{}},\"pair\":[7,8],\"real\":0.1,"
            "\"text\":\"a\\\"b\\n\xc3\xa9\",\"truth\":true,\"whole\":-3,\"z\":null}");
  EXPECT_EQ((Json{{"a", Json::array({1, 2})}}).dump(1), "{\n \"a\": [\n  1,\n  2\n ]\n}");
  EXPECT_EQ(Json(std::nan("")).dump(), "null");
  std::ostringstream out;
  out << Json("x");
  EXPECT_EQ(out.str(), "\"x\"");
}

TEST(Json, what_is_not_utf8_is_refused_or_replaced) {
  EXPECT_EQ(Json("\xc3\xa9</").dump_ascii(), "\"\\u00e9</\"");
  EXPECT_EQ(Json("a\xff").dump_ascii(), "\"a\\ufffd\"");
  EXPECT_THROW((void)Json("a\xff").dump(), JsonError);
}

TEST(Json, reads_what_a_file_holds) {
  const Json file = Json::parse(
      R"({"n": 3, "below": -4, "x": 1e-3, "big": 18446744073709551615, "ok": false, "none": null,
          "names": ["a", "b"], "rows": [[1, 2.5], []], "object": {"k": "v"}})");
  EXPECT_EQ(file.size(), 9U);
  EXPECT_EQ(file.at("n").get<int>(), 3);
  EXPECT_EQ(file.at("below").get<std::int64_t>(), -4);
  EXPECT_EQ(file.at("n").get<double>(), 3.0);
  EXPECT_EQ(file.at("x").get<double>(), 1e-3);
  EXPECT_EQ(file.at("big").get<std::uint64_t>(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(file.at("ok").get<bool>());
  EXPECT_TRUE(file.at("none").is_null() && file.at("ok").is_boolean() && file.at("x").is_number());
  EXPECT_TRUE(file.at("names").is_array() && file.at("object").is_object());
  EXPECT_EQ(file.at("names").get<std::vector<std::string>>(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(file.at("rows").get<std::vector<std::vector<double>>>(),
            (std::vector<std::vector<double>>{{1, 2.5}, {}}));
  EXPECT_EQ(file["object"]["k"], "v");
  EXPECT_TRUE(file.contains("none"));
  EXPECT_FALSE(file.contains("absent") || file.at("n").contains("n"));
  std::string values;
  for (const Json& name : file.at("names")) values += name.get<std::string>();
  for (const auto& [key, value] : file.at("object").items()) values += key + value.dump();
  EXPECT_EQ(values, "abk\"v\"");
  EXPECT_EQ(Json().begin(), Json().end());
}

TEST(Json, complains_about_what_is_not_there) {
  const Json file = Json::parse(R"({"n": 3, "list": [1], "text": "1"})");
  EXPECT_THROW((void)file.at("m"), JsonError);
  EXPECT_THROW((void)file.at("n").at("m"), JsonError);
  EXPECT_THROW((void)file.at("list").at(1), JsonError);
  EXPECT_THROW((void)file.at("list").at("m"), JsonError);
  EXPECT_THROW((void)file.at("n").begin(), JsonError);
  EXPECT_THROW((void)file.at("text").get<double>(), JsonError);
  EXPECT_THROW((void)file.at("n").get<std::string>(), JsonError);
  EXPECT_THROW((void)file.at("n").get<bool>(), JsonError);
  EXPECT_THROW((void)file.at("n").get<std::vector<double>>(), JsonError);
  EXPECT_THROW((void)file.at("list").items(), JsonError);
  Json number = 3;
  EXPECT_THROW(number["a"] = 1, JsonError);
  EXPECT_THROW(number.push_back(1), JsonError);
  EXPECT_THROW(number.erase("a"), JsonError);
}

TEST(Json, a_text_that_is_no_json_is_an_error_however_deep) {
  for (const char* text : {"", "{", "[1,]", "{\"a\" 1}", "nul", "1 2", "\"\xff\""})
    EXPECT_THROW((void)Json::parse(text), JsonError) << text;
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(Json::parse(nested(200)).dump(), nested(200));
  EXPECT_THROW((void)Json::parse(nested(201)), JsonError);
  EXPECT_THROW((void)Json::parse(nested(1'000'000)), JsonError);
}

TEST(Json, is_built_in_steps) {
  Json object;
  object["b"] = 1;
  object["b"] = "again";
  object["list"].push_back(2.5);
  object["list"].push_back(Json{{"k", false}});
  object.update(Json{{"c", 3}, {"b", nullptr}});
  EXPECT_EQ(object.dump(), R"({"b":null,"c":3,"list":[2.5,{"k":false}]})");
  object.erase("c");
  object.erase("absent");
  object["list"][0] = 7;
  object.at("list").at(1)["k"] = true;
  EXPECT_EQ(object.dump(), R"({"b":null,"list":[7,{"k":true}]})");
  object["list"].erase(0);
  EXPECT_EQ(object["list"].dump(), R"([{"k":true}])");
  EXPECT_THROW(object["list"].erase(1), JsonError);
}

TEST(Json, copies_are_apart_and_a_part_may_take_the_place_of_the_whole) {
  Json first{{"a", Json::array({1, 2})}, {"b", "x"}};
  const Json copy = first;
  first["a"][0] = 5;
  EXPECT_EQ(copy.dump(), R"({"a":[1,2],"b":"x"})");
  EXPECT_EQ(first.dump(), R"({"a":[5,2],"b":"x"})");
  first = first.at("a");
  EXPECT_EQ(first.dump(), "[5,2]");
  first = std::move(first[1]);
  EXPECT_EQ(first, 2);
}

TEST(Json, numbers_are_equal_as_numbers_and_nothing_else_is) {
  EXPECT_EQ(Json::parse("3"), 3);
  EXPECT_EQ(Json::parse("3.0"), 3);
  EXPECT_EQ(Json::parse("-3"), -3.0);
  EXPECT_FALSE(Json(3) == Json("3"));
  EXPECT_FALSE(Json(1) == Json(true));
  EXPECT_FALSE(Json(0) == Json(nullptr));
  EXPECT_EQ(Json(nullptr), Json());
  EXPECT_EQ(Json::parse(R"({"a": [1, {"b": null}]})"),
            (Json{{"a", Json::array({1.0, Json{{"b", nullptr}}})}}));
  EXPECT_FALSE(Json::parse("[1, 2]") == Json::array({2, 1}));
}

}  // namespace
}  // namespace strata
