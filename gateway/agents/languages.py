"""What the built-in agent knows of languages: small tables of words, and the one way to compare words.

Of a language with spaces: *asking* words open a question; *function* words carry no topic; *talk* words are about
the talking and remembering itself ("we discussed", "you told me", "last time"). Tables are written naturally and folded
when loaded, because people leave out accents. Chinese has no spaces: its tables are cut out of a run, longest first.
"""

# ruff: noqa: RUF001 - these tables are of other scripts on purpose
from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

__all__ = [
    "CHINESE_ENDINGS",
    "CHINESE_FUNCTION",
    "CHINESE_OPENINGS",
    "CHINESE_TALK",
    "LEADING",
    "LEXICA",
    "MARKS",
    "SUBJECTS",
    "Language",
    "Lexicon",
    "fold",
]

Language: TypeAlias = Literal["en", "zh", "ru", "de", "fr", "es"]

_ACCENTS: Final = re.compile("[\u0300-\u036f]")


def fold(text: str) -> str:
    """Return `text` for comparing: compatibility forms, case and accents folded away. Kana and Hangul stay whole."""
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", text.replace("’", "'")))
    return unicodedata.normalize("NFC", bare).casefold()


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The folded words of one language that is written with spaces."""

    asking: frozenset[str]
    function: frozenset[str]
    talk: frozenset[str]


def _words(text: str) -> frozenset[str]:
    return frozenset(fold(text).split())


def _table(text: str) -> tuple[str, ...]:
    return tuple(text.split())


LEXICA: Final[dict[Language, Lexicon]] = {
    "en": Lexicon(
        asking=_words("who whom whose what when where why which how what's who's where's when's why's how's"),
        function=_words(
            "a an the and or but if then than that this these those there here it its it's i i'm i've i'd me my mine "
            "we we've us our ours you you've your yours he him his she her they them their is are was were am be been "
            "being do does did done has have had having can could will would shall should may might must of in on at "
            "to from for by with about into out up as not no yes so just also any some please isn't aren't don't "
            "doesn't didn't many much"
        ),
        talk=_words(
            "talk talked talking discuss discussed discussing say said saying tell told mention mentioned speak spoke "
            "remember remind recall know knew note noted write wrote written keep kept store stored save saved put "
            "find found look looked looking show give gave ask asked last time times earlier before ago previously "
            "recently yesterday today week month thing things stuff something anything again ever"
        ),
    ),
    "ru": Lexicon(
        asking=_words(
            "кто кого кому кем что чего чему чем где когда почему зачем отчего как какой какая какое какие какого "
            "какую каким какими каких какому каком каков какова каковы сколько скольких куда откуда чей чья чьё чьи "
            "который"
        ),
        function=_words(
            "а и или но же ли бы не ни да нет в во на с со к ко у о об обо от ото до по за из изо для при про под над "
            "без через между это этот эта эти этого этой этом этому этих тот та то те того той том тому тех там тут "
            "здесь я меня мне мной ты тебя тебе тобой мы нас нам нами вы вас вам вами он его ему им она её ей они их "
            "такой такая такое такие мой моя моё мои моего моей моих твой твоя твоё твоего твоей твоих наш наша наше "
            "наши нашего нашей ваш ваша ваши свой своя своё был была было были есть быть будет так уже ещё только "
            "можно нужно надо пожалуйста ну вот который которая которое которые которого которую которой котором"
        ),
        talk=_words(
            "говорил говорила говорили говорю сказал сказала сказали обсуждал обсуждали обсуждала упоминал упоминали "
            "упоминала рассказывал рассказывала рассказывали писал писала писали записал записала записали помнишь "
            "помните напомни напомните вспомни знаешь знаете скажи скажите найди найдите покажи покажите лежит лежат "
            "находится находятся последний прошлый раз раньше ранее недавно вчера сегодня прошлой неделе тогда"
        ),
    ),
    "de": Lexicon(
        asking=_words(
            "wer wen wem wessen was wann wo wohin woher warum wieso weshalb weswegen wie wieviel wieviele welche "
            "welcher welches welchen welchem womit wofür worüber wozu wodurch woran worauf worin wovon"
        ),
        function=_words(
            "der die das den dem des ein eine einer eines einem einen und oder aber wenn dann als dass ob ich mich mir "
            "mein meine meinen meinem meiner du dich dir dein deine deinen wir uns unser unsere unseren ihr euch euer "
            "er ihn ihm sie es sein seine ist sind war waren bin bist sei gewesen hat habe haben hatte hatten habt "
            "hast kann können konnte wird werden wurde soll sollte muss darf von vom im in an am auf aus bei mit nach "
            "zu zum zur für über unter um durch gegen ohne nicht kein keine auch noch nur schon mal denn doch da dort "
            "hier so bitte man sich viel viele"
        ),
        talk=_words(
            "gesprochen geredet reden sprachen besprochen diskutiert gesagt sagte erzählt erwähnt geschrieben notiert "
            "gespeichert gemerkt erinnere erinnern erinnerst weißt weiß wissen sag sagen zeig zeige zeigen finde "
            "finden gefunden liegt liegen steht letztes letzten letzte früher vorher neulich kürzlich gestern heute "
            "woche sache ding etwas nochmal"
        ),
    ),
    "fr": Lexicon(
        asking=_words(
            "qui que quoi quand où comment pourquoi combien quel quelle quels quelles lequel laquelle lesquels "
            "lesquelles qu'est-ce est-ce qu'est"
        ),
        function=_words(
            "le la les l un une des du de d et ou mais si ce cet cette ces c ça cela je j me m mon ma mes moi tu te t "
            "ton ta tes toi il elle on nous notre nos vous votre vos ils elles leur leurs lui se s sa son ses est sont "
            "était étaient suis es être été a ai as avons avez ont avait avais avions avaient y en dans sur sous par "
            "pour avec sans chez vers à au aux ne n pas plus aussi encore déjà bien ici alors donc dont plaît"
        ),
        talk=_words(
            "parlé parler parlions parlait discuté discuter discutions dit dire disait mentionné mentionner évoqué "
            "raconté écrit noté noter gardé rappelle rappeler souviens sais savez savoir dis trouve trouver montre "
            "montrer dernière dernier fois avant hier récemment semaine chose truc quelque"
        ),
    ),
    "es": Lexicon(
        asking=_words("quién quiénes qué cuándo dónde adónde cómo cuál cuáles cuánto cuánta cuántos cuántas"),
        function=_words(
            "el la los las lo un una unos unas y e o u pero si de del al a en con sin por para sobre entre hacia hasta "
            "desde yo me mi mis mío tú te ti tus tu su sus nos nosotros nuestra nuestro nuestros nuestras vosotros os "
            "ustedes se le les ella ellos ellas este esta esto estos estas ese esa eso esos esas aquel aquella es son "
            "era eran soy eres ser sido está están estaba estaban estar hay ha he has hemos han había haber fue fueron "
            "no ni ya muy más también aquí allí ahí así pues favor"
        ),
        talk=_words(
            "hablamos hablado hablar habla discutimos discutido discutir dije dijiste dijo dijimos dicho decir "
            "comentamos comentado mencionamos mencionado mencionó mencionaste escribí escribió escrito anoté anotado "
            "guardé guardado recuerda recuerdas recordar sabes sabe saber dime busca encuentra encontrar muestra "
            "muéstrame última vez antes ayer hoy semana cosa algo"
        ),
    ),
}

#: Words that may stand before the asking word: "in which file", "à quelle heure", "по какому адресу".
LEADING: Final = _words(
    "and in at on to и а в во на с со к ко у о об от до по из для und in an auf aus bei mit nach zu von für seit bis "
    "um et à de en pour avec sur c'est y a de en por para con desde"
)

#: English turns the words round when it asks ("what did we"); "what we decided" tells something.
SUBJECTS: Final = _words("i we you he she they it this that there")

#: Letters that only one of the languages with Latin script uses.
MARKS: Final[dict[Language, str]] = {"de": "äöüß", "fr": "çœàèêâû", "es": "ñ¿¡"}

#: A Chinese question opens with one of these,
CHINESE_OPENINGS: Final = _table(
    "请问 請問 什么 什麼 怎么 怎麼 怎样 怎樣 为什么 為什麼 为何 為何 如何 谁 誰 哪 几点 幾點 几个 幾個 几时 几号 几月 "
    "几天 多少 多久 何时 何時 何处 何處 是否 是不是 有没有 有沒有 能不能 可不可以 会不会 會不會 要不要"
)

#: or it closes with one of these: the topic comes first.
CHINESE_ENDINGS: Final = _table(
    "吗 嗎 什么 什麼 哪 哪里 哪裡 哪儿 哪兒 哪个 哪個 哪天 谁 誰 多少 多久 几点 幾點 几号 几个 怎么办 怎麼辦 怎么样 "
    "怎麼樣 怎么用 怎么做 怎麼做 为什么 為什麼"
)

#: Without topic: asking words, pronouns, particles. Single characters only where they seldom build other words.
CHINESE_FUNCTION: Final = _table(
    "请问 請問 什么时候 什麼時候 什么地方 什麼地方 为什么 為什麼 为何 為何 是什么 是什麼 什么 什麼 怎么样 怎麼樣 "
    "怎么办 怎麼辦 怎么 怎麼 怎样 怎樣 在哪里 在哪裡 在哪儿 在哪兒 在哪 哪里 哪裡 哪儿 哪兒 哪个 哪個 哪些 哪天 哪 "
    "是谁 是誰 谁 誰 是多少 多少 多久 几点 幾點 几个 幾個 几时 几号 几月 几天 何时 何時 何处 何處 如何 是否 是不是 "
    "有没有 有沒有 能不能 可不可以 会不会 會不會 要不要 吗 嗎 呢 吧 啊 呀 嘛 啦 我们的 我們的 你们的 他们的 我的 你的 "
    "您的 他的 她的 我们 我們 你们 你們 他们 他們 她们 我 你 您 他 她 它 这个 這個 那个 那個 这些 這些 那些 这里 這裡 "
    "那里 那裡 这 這 那 一个 一個 一下 的 了 着 和 与 跟 在 是 把 被 关于 關於 有关 有關"
)

#: About talking and remembering.
CHINESE_TALK: Final = _table(
    "上一次 上次 上回 之前 以前 刚才 剛才 昨天 今天 前天 上周 上週 上个月 最近 曾经 讨论过 討論過 讨论 討論 聊过 聊過 "
    "聊到 聊 谈过 談過 谈到 談到 谈 談 说过 說過 说 說 提到 提过 提過 提及 告诉过 告訴過 告诉 告訴 记得 記得 记录 記錄 "
    "记下 記下 记住 記住 知道 找到 找 查 放在 放"
)
