"""Frequent words of English and German for language detection: pronouns, articles, prepositions, …

The built-in corpus is about everyday things; these words allow a detector to recognise texts on
other subjects. They were written down by hand. Tested through `language_detection`.
"""

from collections.abc import Mapping

COMMON_WORDS: Mapping[str, str] = {
    "en": """
        the be to of and a in that have I it for not on with he as you do at this but his by from
        they we say her she or an will my one all would there their what so up out if about who get
        which go me when make can like time no just him know take people into year your good some
        could them see other than then now look only come its over think also back after use two how
        our work first well way even new want because any these give day most us is are was were
        been being has had does did done said went gone made am much many very where here more such
        own same each few both between through during before under again against once while why
        whose whom might must shall should may cannot don't isn't didn't I'm you're it's that's
        hello thanks please yes sorry welcome morning evening night today tomorrow yesterday world
        government company report price market police minister according announced measures
        something nothing everything someone nobody always never often sometimes perhaps however
        although though without within toward upon since until already still yet another every
        enough quite rather almost things life
    """,
    "de": """
        der die das den dem des ein eine einer einem einen eines und oder aber nicht kein keine
        keinen ist sind war waren bin bist seid gewesen haben habe hast hat hatte hatten werden wird
        wurde wurden worden würde kann können konnte muss müssen soll sollen sollte will wollen
        wollte darf dürfen mag möchte ich du er sie es wir ihr mich dich sich uns euch mir dir ihm
        ihn ihnen mein dein sein unser euer mit von zu zur zum auf für an am im in ins aus bei beim
        nach über unter vor hinter neben zwischen durch gegen ohne um bis seit während wegen als wie
        wenn weil dass ob damit obwohl denn doch noch nur auch schon immer wieder nie oft manchmal
        vielleicht jedoch sehr mehr viel viele wenig alle alles etwas nichts jemand niemand man hier
        da dort wo wohin woher wann warum wer was welche welcher dieser diese dieses jeder jede
        jedes andere anderen neu neue neuen gut gute guten groß große klein jetzt heute morgen
        gestern danke bitte ja nein hallo willkommen Entschuldigung Tag Abend Nacht Jahr Jahre Zeit
        Welt Menschen Leben Stadt Land Regierung Unternehmen Preis Markt Polizei Minister laut
        kündigte Maßnahmen Frage Antwort zwei drei erste letzten machen macht gemacht gehen geht
        ging kommen kommt kam sagen sagt sagte geben gibt gab sehen sieht stehen steht lassen lässt
        bleiben bleibt finden findet zurück zusammen gegenüber möglich eigentlich
    """,
}
