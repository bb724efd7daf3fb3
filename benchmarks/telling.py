"""Ways of telling something and of asking for it later, in English and in Chinese, and the small talk around it.

`{names}` are put in from WORDS. `known` are the names that a question gives away: together they tell one thing from all
others that are told in the same way. The turns that answer are named by their place.
"""

# ruff: noqa: RUF001 - Chinese punctuation is what is written
from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["SMALL_TALK", "TELLINGS", "WORDS", "Telling"]


@dataclass(frozen=True, slots=True)
class Telling:
    """One way of telling something, with ways of asking for it."""

    language: str
    held_out: bool
    known: tuple[str, ...]
    turns: tuple[str, ...]
    evidence: tuple[int, ...]
    questions: tuple[str, ...]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


WORDS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "en": {
        "name": _words("Mia Tom Priya Jonas Elena Kofi Yuki Sara Ben Laila Oscar Nadia Ravi Greta Hugo Ines"),
        "town": _words("Lisbon Bergen Kyoto Tucson Graz Ghent Oaxaca Leeds Perth Malmo Quito Turin Galway Hanoi"),
        "thing": _words("bicycle kayak camera violin tent oven sofa drone telescope laptop jacket piano grill"),
        "pet": _words("puppy kitten parrot tortoise hamster rabbit ferret goldfish"),
        "dish": _words("lasagna ramen paella goulash pancakes dumplings chili brownies risotto curry"),
        "sport": _words("climbing rowing fencing judo surfing archery badminton yoga bouldering karate"),
        "day": _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday"),
        "month": _words("January March April May July August October November"),
        "price": ("40 euros", "120 dollars", "75 pounds", "310 euros", "18 dollars", "950 dollars"),
        "color": _words("turquoise crimson beige olive purple orange silver yellow"),
        "job": _words("nurse baker carpenter translator librarian pilot gardener welder"),
        "book": ("Dune", "Middlemarch", "Solaris", "Beloved", "Emma", "Ulysses", "Kindred", "Piranesi"),
    },
    "zh": {
        "name": _words("小林 阿强 王芳 李雷 陈静 老周 小雨 张伟 刘洋 赵敏 大刘 孙悦"),
        "town": _words("杭州 成都 大理 青岛 西安 厦门 苏州 哈尔滨 昆明 桂林 拉萨 南京"),
        "thing": _words("自行车 相机 吉他 帐篷 烤箱 沙发 无人机 望远镜 笔记本电脑 羽绒服 钢琴"),
        "pet": _words("小狗 小猫 鹦鹉 乌龟 仓鼠 兔子 金鱼"),
        "dish": _words("红烧肉 饺子 火锅 披萨 蛋糕 酸菜鱼 炒面 咖喱饭"),
        "sport": _words("攀岩 划船 击剑 柔道 冲浪 射箭 羽毛球 瑜伽"),
        "day": _words("星期一 星期二 星期三 星期四 星期五 星期六 星期天"),
        "month": _words("一月 三月 四月 五月 七月 八月 十月 十一月"),
        "price": ("三百块", "一千二百元", "八十五块", "两千元", "六百块"),
        "color": _words("蓝色 红色 米色 绿色 紫色 橙色 银色 黄色"),
        "job": _words("护士 面包师 木匠 翻译 图书管理员 飞行员 园丁 电工"),
        "book": ("《三体》", "《活着》", "《围城》", "《边城》", "《红楼梦》", "《骆驼祥子》"),
    },
}

SMALL_TALK: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "en": (
        ("Hey, how are you doing today?", "Pretty good, thanks for asking! And you?"),
        ("The weather has been awful lately.", "I know, it rains all the time. I miss the sun."),
        ("Did you sleep well?", "Not really, the neighbours were loud again."),
        ("I'm so tired after work.", "You should take a break and rest a little.", "You are right, maybe I will."),
        ("What are your plans for the weekend?", "Nothing special, maybe a walk and a movie."),
        ("That sounds great!", "Yes, I'm really looking forward to it."),
        ("Work has been busy, so many meetings.", "Same here. I hardly had time for lunch."),
        ("It was lovely talking to you.", "Likewise! Talk to you soon, take care."),
        ("Have you seen the news?", "I try not to, it only makes me worry."),
        ("I went for a run this morning.", "Nice, you are getting fitter every week!"),
        ("My family came to visit, it was fun.", "Family time is important. What did you all do?", "Mostly cooking."),
        ("I bought some groceries on the way home.", "Good, I was getting hungry."),
    ),
    "zh": (
        ("今天过得怎么样？", "还不错，谢谢！你呢？"),
        ("最近天气真差。", "是啊，天天下雨，好想晒太阳。"),
        ("昨晚睡得好吗？", "不太好，邻居又很吵。"),
        ("下班以后好累。", "你应该休息一下。", "说得对，我歇一会儿。"),
        ("周末有什么打算？", "没什么特别的，可能散散步看个电影。"),
        ("听起来真不错！", "对，我特别期待。"),
        ("最近工作好忙，天天开会。", "我也是，午饭都没时间吃。"),
        ("和你聊天真开心。", "我也是！下次再聊，保重。"),
        ("你看新闻了吗？", "尽量不看，看了就担心。"),
        ("我今天早上去跑步了。", "厉害，你越来越健康了！"),
        ("家里人来看我了，很热闹。", "家人最重要。你们做什么了？", "主要是做饭。"),
        ("回家路上买了点菜。", "太好了，我正饿着呢。"),
    ),
}


def _en(known: str, turns: tuple[str, ...], evidence: tuple[int, ...], *questions: str, held: bool = False) -> Telling:
    return Telling("en", held, tuple(known.split()), turns, evidence, questions)


def _zh(known: str, turns: tuple[str, ...], evidence: tuple[int, ...], *questions: str, held: bool = False) -> Telling:
    return Telling("zh", held, tuple(known.split()), turns, evidence, questions)


TELLINGS: Final = (
    _en(
        "name pet",
        ("Big news: {name} has adopted a {pet} from a shelter in {town}!", "Aww, congratulations!"),
        (0,),
        "Where does the {pet} that {name} adopted come from?",
        "What animal did {name} adopt?",
    ),
    _en(
        "name sport",
        ("How did you like it?", "I loved it. {name} took me along for {sport}, every {day} from now on."),
        (1,),
        "On which day of the week do they go {sport} with {name}?",
        "When is {sport} practice with {name}?",
    ),
    _en(
        "name thing",
        ("{name} is selling the old {thing}.", "Really? For how much?", "Only {price}, a bargain."),
        (2,),
        "How much does {name} want for the {thing}?",
        "What is the price of the {thing} that {name} sells?",
    ),
    _en(
        "name dish",
        ("Any plans for dinner?", "{name} is cooking {dish} tonight, with a secret ingredient: cinnamon."),
        (1,),
        "What is the secret ingredient when {name} cooks {dish}?",
        "What does {name} put into the {dish}?",
    ),
    _en(
        "name town",
        ("{name} is moving to {town} in {month} for a new job.", "Wow, that is a big step."),
        (0,),
        "When will {name} move to {town}?",
        "Why does {name} want to move to {town}?",
    ),
    _en(
        "name book",
        ("What are you reading?", "{name} lent me {book}. I cried at the end, honestly."),
        (1,),
        "Who lent out {book} by {name}'s shelf?",
        "Which book did {name} lend?",
    ),
    _en(
        "name color thing",
        ("I saw {name} with a {thing} yesterday.", "The {color} one? It was a birthday present."),
        (1,),
        "Who got a {color} {thing}?",
        "What was the occasion for {name} getting the {color} {thing}?",
    ),
    _en(
        "name job",
        ("So what is {name} doing these days?", "Training to become a {job}, the exams are in {month}."),
        (1,),
        "When are the exams of {name} for becoming a {job}?",
        "What profession is {name} training for?",
    ),
    _en(
        "name town day",
        ("The train of {name} leaves for {town} on {day} at half past six.", "That's early!"),
        (0,),
        "At what time does {name}'s train to {town} leave on {day}?",
        "Which train is {name} taking to {town}?",
    ),
    _en(
        "name thing town",
        ("My {thing} broke in {town}.", "Oh no! Could anybody help?", "{name} repaired it for free."),
        (0, 2),
        "Who repaired the {thing} that was broken in {town}?",
        "What did {name} repair in {town}?",
        held=True,
    ),
    _en(
        "name month sport",
        ("{name} ran in a {sport} contest in {month}.", "How did it go?", "Third place! A medal!"),
        (0, 2),
        "Which place did {name} reach at the {sport} competition?",
        "When was the {sport} contest of {name}?",
        held=True,
    ),
    _en(
        "name pet color",
        ("The {pet} of {name} is sick.", "Poor thing, what happened?", "It swallowed a {color} button."),
        (0, 2),
        "What did {name}'s {pet} swallow?",
        "Why was the {pet} of {name} ill?",
        held=True,
    ),
    _en(
        "name dish town",
        ("{name} found a place with great {dish} in {town}, near the old harbour.", "Let's go there!"),
        (0,),
        "Where in {town} can one eat good {dish} according to {name}?",
        "Which restaurant did {name} discover in {town}?",
        held=True,
    ),
    _en(
        "name day thing",
        ("Can I borrow your {thing}?", "Sure, but {name} needs it back by {day}."),
        (1,),
        "By when does {name} need the {thing} returned?",
        "Who needs the borrowed {thing} on {day}?",
        held=True,
    ),
    _en(
        "name town month",
        ("{name} got married in {town} last {month}.", "I saw the pictures, lovely dress!"),
        (0,),
        "Where was the wedding of {name}, was it {town}?",
        "When did {name} marry in {town}?",
        held=True,
    ),
    _en(
        "name job price",
        ("{name} works as a {job} now and earns {price} more.", "That is a good raise."),
        (0,),
        "How much more money does {name} make working as a {job}?",
        "What is {name}'s new occupation?",
        held=True,
    ),
    _en(
        "name book month",
        ("{name} is writing a sequel to {book}.", "When will it be published?", "Sometime in {month}."),
        (0, 2),
        "What is {name} writing?",
        "When does {name} publish the sequel of {book}?",
        held=True,
    ),
    _en(
        "name color town",
        ("They painted the house of {name} in {town} {color}.", "The whole house?"),
        (0,),
        "What colour was {name}'s house in {town} painted?",
        "Whose house in {town} is being painted?",
        held=True,
    ),
    _zh(
        "name pet",
        ("好消息：{name}在{town}的收容所领养了一只{pet}！", "恭喜恭喜！"),
        (0,),
        "{name}领养的{pet}是从哪里来的？",
        "{name}养了什么宠物？",
    ),
    _zh(
        "name sport",
        ("你觉得怎么样？", "特别喜欢。{name}带我去练{sport}，以后每个{day}都去。"),
        (1,),
        "和{name}一起练{sport}是星期几？",
        "{name}什么时候带人去{sport}？",
    ),
    _zh(
        "name thing",
        ("{name}想把旧{thing}卖掉。", "真的吗？卖多少钱？", "只要{price}，很划算。"),
        (0, 2),
        "{name}的{thing}卖多少钱？",
        "{name}要卖的{thing}是什么价格？",
    ),
    _zh(
        "name dish",
        ("晚饭吃什么？", "{name}今晚做{dish}，秘密配料是肉桂。"),
        (1,),
        "{name}做{dish}的秘密配料是什么？",
        "{name}的{dish}里放了什么？",
    ),
    _zh(
        "name town",
        ("{name}{month}要搬到{town}去，换了新工作。", "哇，这是件大事。"),
        (0,),
        "{name}什么时候搬去{town}？",
        "{name}为什么要搬到{town}？",
    ),
    _zh(
        "name book",
        ("你在看什么书？", "{name}借给我一本{book}，结尾把我看哭了。"),
        (1,),
        "{name}借出去的是哪本书？",
        "谁借了{book}给人看，是{name}吗？",
    ),
    _zh(
        "name job",
        ("{name}最近在忙什么？", "在准备当{job}，{month}考试。"),
        (0, 1),
        "{name}的{job}考试在几月？",
        "{name}想做什么职业？",
    ),
    _zh(
        "name thing town",
        ("我的{thing}在{town}坏了。", "糟糕！有人帮忙吗？", "{name}免费给我修好了。"),
        (0, 2),
        "在{town}坏掉的{thing}是谁修的？",
        "{name}在{town}修了什么东西？",
        held=True,
    ),
    _zh(
        "name month sport",
        ("{name}{month}参加了{sport}比赛。", "结果怎么样？", "第三名！还有奖牌！"),
        (0, 2),
        "{name}在{sport}比赛得了第几名？",
        "{name}的{sport}比赛是什么时候？",
        held=True,
    ),
    _zh(
        "name pet color",
        ("{name}的{pet}生病了。", "可怜，怎么回事？", "吞了一颗{color}的纽扣。"),
        (0, 2),
        "{name}家的{pet}吞了什么？",
        "{name}的{pet}为什么病了？",
        held=True,
    ),
    _zh(
        "name dish town",
        ("{name}在{town}发现一家{dish}特别好吃的店，就在老码头旁边。", "我们去吧！"),
        (0,),
        "{name}说{town}哪里的{dish}好吃？",
        "{name}在{town}找到的饭馆在什么位置？",
        held=True,
    ),
    _zh(
        "name day thing",
        ("能借一下你的{thing}吗？", "可以，不过{name}{day}之前要用。"),
        (1,),
        "{name}什么时候要用{thing}？",
        "借走的{thing}哪天之前要还给{name}？",
        held=True,
    ),
    _zh(
        "name town month",
        ("{name}去年{month}在{town}结婚了。", "我看照片了，婚纱真漂亮！"),
        (0,),
        "{name}的婚礼在哪里办的，是{town}吗？",
        "{name}是几月在{town}结的婚？",
        held=True,
    ),
    _zh(
        "name color town",
        ("{name}把{town}的房子刷成了{color}。", "整栋房子吗？"),
        (0,),
        "{name}在{town}的房子是什么颜色？",
        "谁在{town}刷了房子？是{name}吗？",
        held=True,
    ),
)
